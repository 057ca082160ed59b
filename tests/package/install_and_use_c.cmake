# cmake -P: installs the build in BUILD_DIR under WORK_DIR, then compiles C_PROGRAM and the example in
# C with the flags of pkg-config, and runs them and the example in Python against the installed
# library. Prints "SKIPPED: " and why where there is no pkg-config.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

find_program(PKG_CONFIG NAMES pkg-config pkgconf)
if(NOT PKG_CONFIG)
  message("SKIPPED: pkg-config is not installed (Debian package pkg-config)")
  return()
endif()

file(REMOVE_RECURSE "${WORK_DIR}")
run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --config "${CONFIG}" --prefix "${WORK_DIR}/installed")
# The flags must follow the tree to where it is moved.
file(RENAME "${WORK_DIR}/installed" "${WORK_DIR}/prefix")
file(GLOB_RECURSE pc_file "${WORK_DIR}/prefix/numsim.pc")
cmake_path(GET pc_file PARENT_PATH pc_dir)
cmake_path(GET pc_dir PARENT_PATH library_dir)
set(ENV{PKG_CONFIG_PATH} "${pc_dir}")
set(ENV{LD_LIBRARY_PATH} "${library_dir}")

run("${PKG_CONFIG}" --modversion numsim)
if(NOT output STREQUAL "${VERSION}\n")
  message(FATAL_ERROR "expected version ${VERSION}, pkg-config says ${output}")
endif()
run("${PKG_CONFIG}" --cflags --libs numsim)
string(STRIP "${output}" flags)
separate_arguments(flags UNIX_COMMAND "${flags}")

# use(SOURCE OUTPUT): the program made of SOURCE prints OUTPUT, a regular expression.
function(use source expected)
  cmake_path(GET source STEM name)
  run("${C_COMPILER}" -std=c99 "${source}" -o "${WORK_DIR}/${name}" ${flags})
  run("${WORK_DIR}/${name}")
  message("${output}")
  if(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "expected ${expected}")
  endif()
endfunction()
use("${C_PROGRAM}" "^numsim ${VERSION}: ")
use("${EXAMPLES_DIR}/oracle.c" "^${EXAMPLES_OUTPUT}\n$")

run("${PYTHON}" "${EXAMPLES_DIR}/oracle_ctypes.py")
message("${output}")
if(NOT output MATCHES "^${EXAMPLES_OUTPUT}\n$")
  message(FATAL_ERROR "expected ${EXAMPLES_OUTPUT}")
endif()
