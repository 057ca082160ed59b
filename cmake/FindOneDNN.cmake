# oneDNN as the target DNNL::dnnl, and OneDNN_VERSION. Its own CMake package is not used: that of
# Debian stops the configuration where OpenCL's headers are missing, which oneDNN on a processor does
# not need. A build of oneDNN for other threads than OpenMP's is not found: numsim sets its threads.
find_path(OneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(OneDNN_LIBRARY dnnl)
mark_as_advanced(OneDNN_INCLUDE_DIR OneDNN_LIBRARY)

# OneDNN_value(FILE NAME OUT): the value of `#define NAME VALUE`.
function(OneDNN_value file name out)
  set(line "")
  if(EXISTS "${OneDNN_INCLUDE_DIR}/oneapi/dnnl/${file}")
    file(STRINGS "${OneDNN_INCLUDE_DIR}/oneapi/dnnl/${file}" line
         REGEX "^#define ${name} [A-Z0-9_]+" LIMIT_COUNT 1)
  endif()
  string(REGEX REPLACE "^#define ${name} ([A-Z0-9_]+).*" "\\1" value "${line}")
  set(${out} "${value}" PARENT_SCOPE)
endfunction()

set(OneDNN_VERSION "")
if(OneDNN_INCLUDE_DIR)
  OneDNN_value(dnnl_config.h DNNL_CPU_THREADING_RUNTIME OneDNN_threads)
  foreach(part IN ITEMS MAJOR MINOR PATCH)
    OneDNN_value(dnnl_version.h DNNL_VERSION_${part} value)
    list(APPEND OneDNN_VERSION "${value}")
  endforeach()
  list(JOIN OneDNN_VERSION "." OneDNN_VERSION)
  if(OneDNN_threads STREQUAL "DNNL_RUNTIME_OMP")
    set(OneDNN_openmp YES)
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN
  REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR OneDNN_openmp
  VERSION_VAR OneDNN_VERSION)
if(OneDNN_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED GLOBAL)
  set_target_properties(DNNL::dnnl PROPERTIES
    IMPORTED_LOCATION "${OneDNN_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${OneDNN_INCLUDE_DIR}")
endif()
