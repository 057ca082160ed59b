# Target numsim_options: the compile and link options of numsim's own code. It is not installed, so
# that a project which uses the library keeps its own options.

add_library(numsim_options INTERFACE)

# A float product and sum are rounded twice, as written; without -march the code runs on every
# machine of the architecture, and Highway picks the SIMD target at run time.
target_compile_options(numsim_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)

target_compile_options(numsim_options INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:-Wall;-Wextra;-Wnon-virtual-dtor;-Woverloaded-virtual;-Wvla>
  # The layout of vector arguments, which only ever stay within one SIMD target.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-psabi>)
# g++ also says that an enumerator of an enum class shadows a constant of the namespace, if it reads the
# constant first. Tests that are compiled together (below) meet many headers in many orders.
target_compile_options(numsim_options INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:-Wshadow>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wshadow$<$<BOOL:$<TARGET_PROPERTY:NUMSIM_SHADOW_LOCAL>>:=local>>)
if(NUMSIM_WERROR)
  target_compile_options(numsim_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 reports std::string's own code wrongly (GCC bugs 105651, 105562 and 105329).
  target_compile_options(numsim_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-stringop-overflow;-Wno-error=maybe-uninitialized;-Wno-error=array-bounds>)
endif()

if(NUMSIM_SANITIZE)
  target_compile_options(numsim_options INTERFACE
    -fsanitize=${NUMSIM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(numsim_options INTERFACE -fsanitize=${NUMSIM_SANITIZE})
  # Vector code is most of the build: two targets and the fallback show what a sanitizer can find; the
  # others are tested without one.
  target_compile_definitions(numsim_options INTERFACE
    "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128|HWY_RVV)")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The checks' extra branches confuse this analysis.
    target_compile_options(numsim_options INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

# A build links a hundred tests: lld, where it is installed, takes a sixth of the time of GNU's linker.
find_program(NUMSIM_LLD ld.lld)
mark_as_advanced(NUMSIM_LLD)
if(NUMSIM_LLD)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=lld NUMSIM_LINKS_WITH_LLD)
  if(NUMSIM_LINKS_WITH_LLD)
    target_link_options(numsim_options INTERFACE $<$<LINK_LANGUAGE:CXX>:-fuse-ld=lld>)
  endif()
endif()

# OpenMP comes with g++; clang++ has it in a package of its own.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(NUMSIM_OPENMP_DEBIAN g++)
else()
  set(NUMSIM_OPENMP_DEBIAN libomp-dev)
endif()

# numsim_compile_together(TARGET [BATCH N] [APART FILES...]): N sources at a time, by default six, are one
# translation unit. Most of the time that small files take to compile is headers and their templates. FILES are compiled alone, because names
# of theirs that are local to the file are also names of another file. NUMSIM_COMPILE_TOGETHER=OFF gives
# each source a compile command of its own, which tools such as clang-tidy need.
option(NUMSIM_COMPILE_TOGETHER "Compile several small sources as one" ON)
function(numsim_compile_together target)
  if(NOT NUMSIM_COMPILE_TOGETHER)
    return()
  endif()
  cmake_parse_arguments(arg "" "BATCH" "APART" ${ARGN})
  if(NOT arg_BATCH)
    set(arg_BATCH 6)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${arg_BATCH})
  if(arg_APART)
    set_source_files_properties(${arg_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
