// This file is compiled for this machine's processor. Eigen is renamed to EigenNative here
// (CMakeLists.txt), so that the linker cannot use its functions in place of the library's own Eigen
// functions, which are compiled for a baseline processor. For the same reason, this file does not
// use the standard library.
#include <Eigen/Core>

#include "bench/peers.h"

#define NUMSIM_TEXT_OF(x) #x
#define NUMSIM_TEXT(x) NUMSIM_TEXT_OF(x)

namespace numsim::bench {

void EigenProduct(const float* a, const float* b, size_t n, float* out) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto size = static_cast<Eigen::Index>(n);
  const Eigen::Map<const Matrix> ma(a, size, size), mb(b, size, size);
  Eigen::Map<Matrix>(out, size, size).noalias() = ma * mb.transpose();
}

const char* EigenName() {
  return "Eigen " NUMSIM_TEXT(EIGEN_WORLD_VERSION) "." NUMSIM_TEXT(
      EIGEN_MAJOR_VERSION) "." NUMSIM_TEXT(EIGEN_MINOR_VERSION);
}

}  // namespace numsim::bench
