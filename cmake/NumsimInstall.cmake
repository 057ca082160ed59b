# Installation of the libraries: find_package(numsim) with the targets numsim::numsim and numsim::c,
# and for pkg-config numsim-cxx.pc and numsim.pc. Included by libnumsim/CMakeLists.txt.
include(CMakePackageConfigHelpers)
set(numsim_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/numsim)
if(NUMSIM_HAVE_CUDA)
  cmake_path(GET CUDAToolkit_BIN_DIR PARENT_PATH numsim_cuda_root)
endif()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/numsimConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/numsimConfig.cmake
  INSTALL_DESTINATION ${numsim_package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/numsimConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
# Two export sets, so that the C library can be found without what the C++ library depends on.
install(TARGETS numsim EXPORT numsim-cxxTargets
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILE_SET fragments DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS numsim_c EXPORT numsim-cTargets)
install(EXPORT numsim-cxxTargets NAMESPACE numsim:: DESTINATION ${numsim_package_dir})
install(EXPORT numsim-cTargets NAMESPACE numsim:: DESTINATION ${numsim_package_dir})
install(FILES
    ${CMAKE_CURRENT_BINARY_DIR}/numsimConfig.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/numsimConfigVersion.cmake
    ${PROJECT_SOURCE_DIR}/cmake/FindHighway.cmake
    ${PROJECT_SOURCE_DIR}/cmake/FindOneDNN.cmake
    ${PROJECT_SOURCE_DIR}/cmake/FindSentencePiece.cmake
  DESTINATION ${numsim_package_dir})
install(FILES ${numsim_c_header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# The installed tree may be moved, so the prefix is found from where the .pc files lie.
set(numsim_pc_prefix ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH numsim_pc_prefix "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
  string(REGEX REPLACE "/$" "" numsim_pc_prefix "${numsim_pc_prefix}")
  set(numsim_pc_prefix "\${pcfiledir}/${numsim_pc_prefix}")
endif()
set(numsim_pc_libdir "\${prefix}")
set(numsim_pc_includedir "\${prefix}")
cmake_path(APPEND numsim_pc_libdir "${CMAKE_INSTALL_LIBDIR}")  # an absolute path replaces the prefix
cmake_path(APPEND numsim_pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")

# numsim_pc_needs(MODULE TARGET): numsim-cxx.pc needs that module of pkg-config, or the file of the
# target on a machine where pkg-config does not know the module.
set(numsim_pc_requires "")
find_package(PkgConfig QUIET)
function(numsim_pc_needs module target)
  if(PkgConfig_FOUND)
    pkg_check_modules(numsim_pc_${module} QUIET ${module})
  endif()
  if(numsim_pc_${module}_FOUND)
    list(APPEND numsim_pc_requires ${module})
    set(numsim_pc_requires ${numsim_pc_requires} PARENT_SCOPE)
  else()
    set(numsim_pc_libs "${numsim_pc_libs} $<TARGET_FILE:${target}>" PARENT_SCOPE)
  endif()
endfunction()

if(numsim_library_type STREQUAL "STATIC_LIBRARY")
  # By its file name: -lnumsim is the C library. What a static library needs is never private.
  set(numsim_pc_libs "\${libdir}/$<TARGET_FILE_NAME:numsim>")
  numsim_pc_needs(libhwy hwy::hwy)
  numsim_pc_needs(libcrypto OpenSSL::Crypto)
  numsim_pc_needs(zlib ZLIB::ZLIB)
  if(NUMSIM_HAVE_ONEDNN)
    numsim_pc_needs(dnnl DNNL::dnnl)
  endif()
  if(NUMSIM_HAVE_SENTENCEPIECE)
    numsim_pc_needs(sentencepiece SentencePiece::train)
  endif()
  if(NUMSIM_HAVE_CUDA)
    string(APPEND numsim_pc_libs " $<TARGET_FILE:CUDA::cudart_static> -lpthread -ldl -lrt")
  endif()
  string(APPEND numsim_pc_libs " ${OpenMP_CXX_FLAGS}")
else()
  set(numsim_pc_libs "-L\${libdir} -lnumsim-cxx")
endif()
numsim_pc_needs(fmt fmt::fmt)
list(JOIN numsim_pc_requires " " numsim_pc_requires)

configure_file(${PROJECT_SOURCE_DIR}/cmake/numsim.pc.in ${CMAKE_CURRENT_BINARY_DIR}/numsim.pc @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/cmake/numsim-cxx.pc.in
  ${CMAKE_CURRENT_BINARY_DIR}/numsim-cxx.pc.configured @ONLY)
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/$<CONFIG>/numsim-cxx.pc
  INPUT ${CMAKE_CURRENT_BINARY_DIR}/numsim-cxx.pc.configured)
install(FILES
    ${CMAKE_CURRENT_BINARY_DIR}/numsim.pc
    ${CMAKE_CURRENT_BINARY_DIR}/$<CONFIG>/numsim-cxx.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
