// Accumulation mode library by Eigen, for builds without oneDNN.
#include <fmt/format.h>

#include <Eigen/Core>

#include "numsim/base/parallel.h"
#include "numsim/gemm/gemm.h"
#include "numsim/gemm/internal/gemm_parts.h"

namespace numsim {
namespace {

// Eigen stores matrices column by column, so it sees each stored matrix and the result transposed.
Eigen::Map<const Eigen::MatrixXf> Stored(const LibraryFactor<float>& x) {
  const auto rows = static_cast<Eigen::Index>(x.rows), inner = static_cast<Eigen::Index>(x.inner);
  return x.transposed ? Eigen::Map<const Eigen::MatrixXf>(x.data, rows, inner)
                      : Eigen::Map<const Eigen::MatrixXf>(x.data, inner, rows);
}

}  // namespace

void LibraryProduct(const LibraryFactor<float>& a, const LibraryFactor<float>& b, float* out) {
  const auto ma = Stored(a), mb = Stored(b);
  Eigen::Map<Eigen::MatrixXf> product(
      out, static_cast<Eigen::Index>(b.rows), static_cast<Eigen::Index>(a.rows));
  CallLibrary([&](int) {
    if (b.transposed) {
      if (a.transposed) {
        product.noalias() = mb * ma.transpose();
      } else {
        product.noalias() = mb * ma;
      }
    } else if (a.transposed) {
      product.noalias() = mb.transpose() * ma.transpose();
    } else {
      product.noalias() = mb.transpose() * ma;
    }
  });
}

void LibraryProduct(const LibraryFactor<uint16_t>& a,
                    const LibraryFactor<uint16_t>& b,
                    float* out) {
  WidenedProduct(a, b, out);
}

bool MultipliesBf16() { return false; }

const char* GemmLibrary() {
  static const std::string name =
      fmt::format("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
  return name.c_str();
}

}  // namespace numsim
