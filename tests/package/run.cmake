# run(COMMAND [ARGUMENTS...]): runs it and sets `output`; ends the script if it fails.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  string(REGEX REPLACE "-- (Installing|Up-to-date): [^\n]*\n" "" output "${output}")
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nfailed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# check_quantize_example(TEXT): TEXT is what quantize.cc or quantize.c of docs/examples prints.
# Its rows of x are whole numbers of 1/16 and of 8/16 up to 50, and those of w up to 49, 50 and 50 in
# units of 1/16, 8/16 and 64/16. The largest e4m3fn is 448, so these are the scales:
#   3.125 / 448 = 0.0069754464..., 25 / 448 = 0.0558035714...; 3.0625 / 448 = 0.0068359375, and so on.
function(check_quantize_example text)
  if(NOT text MATCHES "^scales of x: 0[.]0069754[0-9]* 0[.]0558035[0-9]*\nscales of w: 0[.]0068359375 0[.]0558035[0-9]* 0[.]4464285[0-9]*\n")
    message(FATAL_ERROR "wrong scales:\n${text}")
  endif()
  foreach(mode IN ITEMS exact fp32 hopper-fp8)
    if(NOT text MATCHES "\n${mode}:( -?[0-9.]+) ( ?-?[0-9.]+)( -?[0-9.]+)( -?[0-9.]+)( -?[0-9.]+)( -?[0-9.]+)\n")
      message(FATAL_ERROR "no six elements under ${mode}:\n${text}")
    endif()
  endforeach()
endfunction()
