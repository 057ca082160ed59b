# cmake -P: installs the build in BUILD_DIR under WORK_DIR, then configures, builds and runs
# PROJECT_DIR and PROJECT_DIR/c_only against it, with C_PROGRAM for the C library and the programs of
# EXAMPLES_DIR. Also runs the installed program where there is one.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${WORK_DIR}")
run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --config "${CONFIG}" --prefix "${WORK_DIR}/prefix")

# configure(SOURCE BUILD ARGUMENTS...): the variable `configure` is the command that does so.
macro(configure source build)
  set(configure "${CMAKE_COMMAND}" -S "${source}" -B "${build}" -G "${GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix" "-DCMAKE_C_COMPILER=${C_COMPILER}"
    "-DC_PROGRAM=${C_PROGRAM}" "-DEXAMPLES_DIR=${EXAMPLES_DIR}" "-DCMAKE_BUILD_TYPE=${CONFIG}"
    -Wdev -Werror=dev ${ARGN})
endmacro()
# build(SOURCE BUILD ARGUMENTS...): configures and builds a project that finds the installed numsim.
function(build source build)
  configure("${source}" "${build}" ${ARGN})
  run(${configure})
  file(STRINGS "${build}/CMakeCache.txt" found REGEX "^numsim_DIR:")
  if(NOT found MATCHES "=${WORK_DIR}/prefix/")
    message(FATAL_ERROR "another numsim was found: ${found}")
  endif()
  run("${CMAKE_COMMAND}" --build "${build}" --config "${CONFIG}")
endfunction()
# refuse(MESSAGE BUILD ARGUMENTS...): the project in C alone is not configured, and MESSAGE says why.
function(refuse message build)
  configure("${PROJECT_DIR}/c_only" "${build}" ${ARGN})
  execute_process(COMMAND ${configure} RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(status EQUAL 0 OR NOT output MATCHES "${message}")
    message(FATAL_ERROR "expected the error ${message}, got ${status}: ${output}")
  endif()
endfunction()

build("${PROJECT_DIR}" "${WORK_DIR}/build" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}")
run("${WORK_DIR}/build/outside")
message("${output}")
if(NOT output MATCHES "^numsim ${VERSION}:")
  message(FATAL_ERROR "expected version ${VERSION}")
endif()
run("${WORK_DIR}/build/outside_c")
run("${WORK_DIR}/build/options")

build("${PROJECT_DIR}/c_only" "${WORK_DIR}/build-c")
run("${WORK_DIR}/build-c/outside_c")
refuse("components cxx and numerics need a project with the language CXX" "${WORK_DIR}/refused-all" -DASK=all)
refuse("no component fortran" "${WORK_DIR}/refused-unknown" -DASK=unknown)

# The example in C++ and that in C are the same program.
run("${WORK_DIR}/build/quantize_cxx")
set(from_cxx "${output}")
run("${WORK_DIR}/build-c/quantize_c")
check_quantize_example("${from_cxx}")
if(NOT output STREQUAL from_cxx)
  message(FATAL_ERROR "quantize.c prints\n${output}\nand quantize.cc\n${from_cxx}")
endif()

# The pages, the examples and the licence are installed, and every page that an installed header
# mentions is there.
file(GLOB_RECURSE licence "${WORK_DIR}/prefix/share/doc/numsim/LICENSE")
if(NOT licence)
  message(FATAL_ERROR "no share/doc/numsim/LICENSE")
endif()
cmake_path(GET licence PARENT_PATH doc_dir)
file(GLOB_RECURSE headers "${WORK_DIR}/prefix/include/*.h")
set(pages docs/c-abi.md docs/examples/quantize.cc docs/examples/quantize.c)
foreach(header IN LISTS headers)
  file(STRINGS "${header}" lines REGEX "docs/[a-z-]+[.]md")
  foreach(line IN LISTS lines)
    string(REGEX MATCHALL "docs/[a-z-]+[.]md" mentioned "${line}")
    list(APPEND pages ${mentioned})
  endforeach()
endforeach()
list(REMOVE_DUPLICATES pages)
foreach(page IN LISTS pages)
  if(NOT EXISTS "${doc_dir}/${page}")
    message(FATAL_ERROR "an installed header mentions ${page}, and ${doc_dir} does not have it")
  endif()
endforeach()
list(LENGTH headers header_count)
list(LENGTH pages page_count)
message("${header_count} headers mention ${page_count} pages")

if(EXISTS "${WORK_DIR}/prefix/bin/numsim")
  run("${WORK_DIR}/prefix/bin/numsim" --help)
endif()
