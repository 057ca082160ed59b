# Installation of the libraries: find_package(numsim) with the targets numsim::numerics, numsim::training,
# numsim::numsim, which is both, and numsim::c, and for pkg-config numsim-numerics.pc, numsim-cxx.pc, which
# is both, and numsim.pc. Included by libnumsim/CMakeLists.txt.
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
# Three export sets, so that the C library can be found without what the C++ library depends on, and
# numerics without what training does.
install(TARGETS numsim_numerics EXPORT numsim-numericsTargets
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILE_SET fragments DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS numsim numsim_training EXPORT numsim-cxxTargets
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILE_SET fragments DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS numsim_c EXPORT numsim-cTargets)
install(EXPORT numsim-numericsTargets NAMESPACE numsim:: DESTINATION ${numsim_package_dir})
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

# numsim_pc_needs(MODULE TARGET): the .pc file that is being composed needs that module of pkg-config, or the
# file of the target on a machine where pkg-config does not know the module.
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
# numsim_write_pc(NAME DESCRIPTION): NAME.pc of what was composed.
function(numsim_write_pc numsim_pc_name numsim_pc_description)
  list(JOIN numsim_pc_requires " " numsim_pc_requires)
  set(configured ${CMAKE_CURRENT_BINARY_DIR}/${numsim_pc_name}.pc.configured)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/numsim-cxx.pc.in ${configured} @ONLY)
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/$<CONFIG>/${numsim_pc_name}.pc INPUT ${configured})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/$<CONFIG>/${numsim_pc_name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

set(numsim_pc_libs "-L\${libdir} -lnumsim-numerics")
set(numsim_pc_requires "")
if(numsim_library_type STREQUAL "STATIC_LIBRARY")  # what such a library needs is never private
  numsim_pc_needs(libhwy hwy::hwy)
  numsim_pc_needs(libcrypto OpenSSL::Crypto)
  numsim_pc_needs(zlib ZLIB::ZLIB)
  if(NUMSIM_HAVE_ONEDNN)
    numsim_pc_needs(dnnl DNNL::dnnl)
  endif()
  if(NUMSIM_HAVE_CUDA)
    string(APPEND numsim_pc_libs " $<TARGET_FILE:CUDA::cudart_static> -lpthread -ldl -lrt")
  endif()
  string(APPEND numsim_pc_libs " ${OpenMP_CXX_FLAGS}")
endif()
numsim_pc_needs(fmt fmt::fmt)
numsim_write_pc(numsim-numerics "C++20 library, without trainings")

set(numsim_pc_libs "-L\${libdir} -lnumsim-training")
set(numsim_pc_requires numsim-numerics)
if(numsim_library_type STREQUAL "STATIC_LIBRARY" AND NUMSIM_HAVE_SENTENCEPIECE)
  numsim_pc_needs(sentencepiece SentencePiece::train)
endif()
numsim_write_pc(numsim-cxx "C++20 library")

configure_file(${PROJECT_SOURCE_DIR}/cmake/numsim.pc.in ${CMAKE_CURRENT_BINARY_DIR}/numsim.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/numsim.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
