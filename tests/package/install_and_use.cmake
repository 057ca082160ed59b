# cmake -P: installs the build in BUILD_DIR under WORK_DIR, then configures, builds and runs
# PROJECT_DIR against it. Also runs the installed program where there is one.
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

file(REMOVE_RECURSE "${WORK_DIR}")
run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --config "${CONFIG}" --prefix "${WORK_DIR}/prefix")
run("${CMAKE_COMMAND}" -S "${PROJECT_DIR}" -B "${WORK_DIR}/build" -G "${GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
    "-DCMAKE_BUILD_TYPE=${CONFIG}" -Wdev -Werror=dev)
file(STRINGS "${WORK_DIR}/build/CMakeCache.txt" found REGEX "^numsim_DIR:")
if(NOT found MATCHES "=${WORK_DIR}/prefix/")
  message(FATAL_ERROR "another numsim was found: ${found}")
endif()
run("${CMAKE_COMMAND}" --build "${WORK_DIR}/build" --config "${CONFIG}")
run("${WORK_DIR}/build/outside")
message("${output}")
if(NOT output MATCHES "^numsim ${VERSION}:")
  message(FATAL_ERROR "expected version ${VERSION}")
endif()
if(EXISTS "${WORK_DIR}/prefix/bin/numsim")
  run("${WORK_DIR}/prefix/bin/numsim" --help)
endif()
