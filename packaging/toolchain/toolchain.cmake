# Builds for glibc 2.28 on Debian 12: with the compiler `c++` of this folder and what `libraries` gathered.
set(CMAKE_CXX_COMPILER ${CMAKE_CURRENT_LIST_DIR}/c++)
set(numsim_wheel_arch $ENV{NUMSIM_WHEEL_ARCH})
set(CMAKE_C_COMPILER ${numsim_wheel_arch}-linux-gnu-gcc-12)  # for Highway alone
set(CMAKE_STRIP ${numsim_wheel_arch}-linux-gnu-strip)
set(numsim_wheel_libraries $ENV{NUMSIM_WHEEL_LIBRARIES})
if(NOT numsim_wheel_arch STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_SYSTEM_PROCESSOR ${numsim_wheel_arch})
  # Headers alone, which Debian has in a folder of this machine's architecture.
  set(tomlplusplus_DIR /usr/lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/cmake/tomlplusplus)
endif()
list(PREPEND CMAKE_PREFIX_PATH ${numsim_wheel_libraries})
foreach(package IN ITEMS OPENSSL ZLIB)
  set(${package}_INCLUDE_DIR ${numsim_wheel_libraries}/include CACHE PATH "")
endforeach()
set(OPENSSL_CRYPTO_LIBRARY ${numsim_wheel_libraries}/lib/libcrypto.a CACHE FILEPATH "")
set(ZLIB_LIBRARY ${numsim_wheel_libraries}/lib/libz.a CACHE FILEPATH "")
# `c++` links OpenMP's runtime itself.
set(OpenMP_CXX_FLAGS -fopenmp CACHE STRING "")
set(OpenMP_CXX_LIB_NAMES "" CACHE STRING "")
set(CMAKE_SKIP_RPATH ON)  # everything of numsim's is linked statically
