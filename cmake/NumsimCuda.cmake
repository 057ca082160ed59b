# CUDA where NUMSIM_CUDA asks for it: sets NUMSIM_HAVE_CUDA and numsim_cuda_sources, the *_cuda.cu
# files beside the CPU sources. AUTO looks for nvcc only when there is such a file.
file(GLOB numsim_cuda_sources CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/libnumsim/numsim/*/*_cuda.cu)
set(NUMSIM_HAVE_CUDA OFF)
if(NUMSIM_CUDA STREQUAL "ON" OR (NUMSIM_CUDA STREQUAL "AUTO" AND numsim_cuda_sources))
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES all-major)
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(NUMSIM_HAVE_CUDA ON)
  elseif(NUMSIM_CUDA STREQUAL "ON")
    message(FATAL_ERROR "NUMSIM_CUDA is ON and no CUDA compiler was found: install the CUDA "
                        "Toolkit and put nvcc on the PATH, or name it in CUDACXX")
  endif()
endif()
