# cmake -P: installs the build in BUILD_DIR under WORK_DIR, then configures, builds and runs
# PROJECT_DIR against it, with C_PROGRAM for the C library. Also runs the installed program where there
# is one.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${WORK_DIR}")
run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --config "${CONFIG}" --prefix "${WORK_DIR}/prefix")
run("${CMAKE_COMMAND}" -S "${PROJECT_DIR}" -B "${WORK_DIR}/build" -G "${GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
    "-DCMAKE_C_COMPILER=${C_COMPILER}" "-DC_PROGRAM=${C_PROGRAM}"
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
run("${WORK_DIR}/build/outside_c")
if(EXISTS "${WORK_DIR}/prefix/bin/numsim")
  run("${WORK_DIR}/prefix/bin/numsim" --help)
endif()
