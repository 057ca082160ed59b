# cmake -P: installs the build in BUILD_DIR under WORK_DIR, then compiles programs with the flags of
# pkg-config and runs them: C_PROGRAM and examples in C with the module numsim; the snippet of README
# and an example in C++ with numsim-cxx, and the snippet with numsim-numerics. Also runs the example in Python. Prints "SKIPPED: " and why
# where there is no pkg-config.
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

# compile_and_run(MODULE SOURCE COMPILER...): compiles SOURCE with the flags of the module and sets
# `output` to what the program prints.
function(compile_and_run module source)
  run("${PKG_CONFIG}" --modversion ${module})
  if(NOT output STREQUAL "${VERSION}\n")
    message(FATAL_ERROR "expected version ${VERSION}, pkg-config says ${output} of ${module}")
  endif()
  run("${PKG_CONFIG}" --cflags --libs ${module})
  string(STRIP "${output}" flags)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  cmake_path(GET source STEM name)
  run(${ARGN} "${source}" -o "${WORK_DIR}/${name}-${module}" ${flags})
  run("${WORK_DIR}/${name}-${module}")
  message("${output}")
  set(output "${output}" PARENT_SCOPE)
endfunction()
# expect(REGULAR_EXPRESSION): `output` matches it.
macro(expect expected)
  if(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "expected ${expected}")
  endif()
endmacro()

compile_and_run(numsim "${C_PROGRAM}" "${C_COMPILER}" -std=c99)
expect("^numsim ${VERSION}: ")
compile_and_run(numsim "${EXAMPLES_DIR}/oracle.c" "${C_COMPILER}" -std=c99)
expect("^${EXAMPLES_OUTPUT}\n$")
compile_and_run(numsim "${EXAMPLES_DIR}/quantize.c" "${C_COMPILER}" -std=c99)
check_quantize_example("${output}")
set(from_c "${output}")
compile_and_run(numsim-cxx "${EXAMPLES_DIR}/quantize.cc" "${CXX_COMPILER}" -std=c++20)
if(NOT output STREQUAL from_c)
  message(FATAL_ERROR "quantize.c prints\n${from_c}\nand quantize.cc\n${output}")
endif()

# The C++ of README's "As a library", with numbers that e4m3fn has: 1 is 0x38 and -448 is 0xFE.
file(READ "${README}" readme)
if(NOT readme MATCHES "## As a library\n\n```cpp\n(#include [^\n]*\n)([^`]*)```")
  message(FATAL_ERROR "README.md does not begin its section \"As a library\" with C++")
endif()
file(WRITE "${WORK_DIR}/readme.cc" "${CMAKE_MATCH_1}
#include <cstdio>
#include <vector>
int main() {
  const std::vector<float> values = {1, -448};
${CMAKE_MATCH_2}
  std::printf(\"%02X %02X\", codes[0], codes[1]);
}
")
# Linked once with every object of the library: numsim-cxx names all that any of them needs.
file(GLOB archives "${library_dir}/libnumsim-*.a")
set(every_object "")
if(archives)
  set(every_object "-Wl,--whole-archive" ${archives} "-Wl,--no-whole-archive")
endif()
compile_and_run(numsim-cxx "${WORK_DIR}/readme.cc" "${CXX_COMPILER}" -std=c++20 ${every_object})
expect("^38 FE$")
compile_and_run(numsim-cxx "${WORK_DIR}/readme.cc" "${CXX_COMPILER}" -std=c++20)
expect("^38 FE$")
# Casts need the first wing alone.
compile_and_run(numsim-numerics "${WORK_DIR}/readme.cc" "${CXX_COMPILER}" -std=c++20)
expect("^38 FE$")

run("${PYTHON}" "${EXAMPLES_DIR}/oracle_ctypes.py")
message("${output}")
expect("^${EXAMPLES_OUTPUT}\n$")
