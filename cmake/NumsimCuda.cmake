# CUDA where NUMSIM_WITH_CUDA asks for it: sets NUMSIM_HAVE_CUDA, and numsim_cuda_text for the message
# of the configuration.

# numsim_find_cuda(MISSING): enables the language CUDA and finds the toolkit, 12.4 or newer; MISSING
# is why that cannot be, or empty. A macro, for languages are enabled for a whole directory.
macro(numsim_find_cuda missing)
  set(${missing} "")
  if(NOT CMAKE_CUDA_COMPILER)
    unset(CMAKE_CUDA_COMPILER CACHE)  # it may have been installed since
    if(NOT DEFINED ENV{CUDACXX})
      # Where the toolkit and .ci/install-cuda put it, which is on few PATHs.
      find_program(NUMSIM_NVCC nvcc
                   PATHS /usr/local/cuda/bin ${PROJECT_SOURCE_DIR}/build/cuda-toolkit/bin)
      mark_as_advanced(NUMSIM_NVCC)
      if(NUMSIM_NVCC)
        set(ENV{CUDACXX} "${NUMSIM_NVCC}")
      endif()
    endif()
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  set(numsim_nvcc_text "")
  if(CMAKE_CUDA_COMPILER)
    execute_process(COMMAND "${CMAKE_CUDA_COMPILER}" --version
                    OUTPUT_VARIABLE numsim_nvcc_text ERROR_QUIET)
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    set(${missing} "no nvcc that works was found: put it on the PATH, or name it in CUDACXX")
  elseif(NOT numsim_nvcc_text MATCHES "release ([0-9]+[.][0-9]+)")
    set(${missing} "${CMAKE_CUDA_COMPILER} is not nvcc")
  elseif(CMAKE_MATCH_1 VERSION_LESS 12.4)
    set(${missing} "nvcc is version ${CMAKE_MATCH_1}, and 12.4 is needed")
  else()
    set(CMAKE_CUDA_ARCHITECTURES ${NUMSIM_CUDA_ARCHITECTURES})
    enable_language(CUDA)
    # The module of CMake 3.25 sets a property of CUDA::nvToolsExt, which CUDA 13 has no more, for
    # projects that require that CMake.
    set(numsim_required_cmake ${CMAKE_MINIMUM_REQUIRED_VERSION})
    set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
    find_package(CUDAToolkit QUIET)
    set(CMAKE_MINIMUM_REQUIRED_VERSION ${numsim_required_cmake})
    find_file(NUMSIM_CUBLASLT_HEADER cublasLt.h PATHS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH)
    mark_as_advanced(NUMSIM_CUBLASLT_HEADER)
    if(NOT TARGET CUDA::cudart_static OR NOT NUMSIM_CUBLASLT_HEADER)
      set(${missing} "the toolkit of ${CMAKE_CUDA_COMPILER} lacks cudart_static or cuBLASLt")
    endif()
  endif()
endmacro()

set(NUMSIM_HAVE_CUDA OFF)
set(numsim_cuda_text "OFF")
if(NOT NUMSIM_WITH_CUDA STREQUAL "OFF")
  if(NUMSIM_SANITIZE)
    set(numsim_no_cuda "nvcc takes no -fsanitize")
  else()
    numsim_find_cuda(numsim_no_cuda)
  endif()
  if(NOT numsim_no_cuda)
    set(NUMSIM_HAVE_CUDA ON)
    set(numsim_cuda_text "${CUDAToolkit_VERSION} for ${NUMSIM_CUDA_ARCHITECTURES}")
  elseif(NUMSIM_WITH_CUDA STREQUAL "AUTO")
    set(numsim_cuda_text "OFF (${numsim_no_cuda})")
  else()
    message(FATAL_ERROR "NUMSIM_WITH_CUDA is ON and cannot be: ${numsim_no_cuda}")
  endif()
endif()

# For `if constexpr (NUMSIM_HAVE_CUDA)` around what calls the GPU kernels.
target_compile_definitions(numsim_options INTERFACE
  NUMSIM_HAVE_CUDA=$<IF:$<BOOL:${NUMSIM_HAVE_CUDA}>,true,false>)
