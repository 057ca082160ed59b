# oneDNN where NUMSIM_ONEDNN asks for it: sets NUMSIM_HAVE_ONEDNN, and with it the target DNNL::dnnl.
set(NUMSIM_HAVE_ONEDNN OFF)
if(NOT NUMSIM_ONEDNN STREQUAL "OFF")
  find_package(OneDNN 2.6 QUIET)
  if(OneDNN_FOUND)
    set(NUMSIM_HAVE_ONEDNN ON)
  elseif(NUMSIM_ONEDNN STREQUAL "ON")
    message(FATAL_ERROR "NUMSIM_ONEDNN is ON and oneDNN 2.6 or newer with OpenMP was not found: "
                        "sudo apt-get install libdnnl-dev")
  endif()
endif()
