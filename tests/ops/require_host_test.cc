// Operations refuse data of a place for which they have no kernel.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "numsim/backend/matrix.h"
#include "numsim/formats/format_table.h"
#include "numsim/ops/elementwise.h"
#include "numsim/ops/shared/activation.h"
#include "numsim/ops/shared/norm.h"
#include "tests/support/elsewhere.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

TEST(RequireHost, NamesTheOperationThatHasNoDeviceKernel) {
  EXPECT_NO_THROW(RequireHost("RMSNorm", {Place(), Place()}));
  EXPECT_EQ(ErrorOf([] {
              RequireHost("RMSNorm", {Place(), Elsewhere()});
            }),
            "RMSNorm has no kernel for a device yet");
}

TEST(RequireHost, OperationsAskForEachOfTheirMatrices) {
  float values[4] = {1, 2, 3, 4};
  const MatrixSpan<float> here(values, 1, 4), there(values, 1, 4, 4, Elsewhere());
  EXPECT_THROW(Copy<float>(there, here), Error);
  EXPECT_THROW(Copy<float>(here, there), Error);
  EXPECT_THROW(Add<float>(here, there, here), Error);
  EXPECT_THROW(AddBias<float>(there, here), Error);
  EXPECT_THROW(ColumnSums<float>(here, there), Error);
  EXPECT_THROW(AddScaledBranch<float>(here, here, there, here), Error);
  EXPECT_THROW(AddScaledBranchGradient<float>(here, here, here, here, there), Error);
  EXPECT_THROW(MeasureAbsolute<float>(there), Error);
  EXPECT_THROW(Gelu<float>(here, there), Error);
  EXPECT_THROW(GeluGradient<float>(here, there, here), Error);
  EXPECT_THROW(Relu<float>(there, here), Error);
  EXPECT_THROW(ReluGradient<float>(there, here, here), Error);
  EXPECT_THROW(Swiglu<float>(here, there.Columns(0, 2)), Error);
  EXPECT_THROW(SwigluGradient<float>(here.Columns(0, 2), there, here), Error);
  const MatrixSpan<float> one(values, 1, 1), one_there(values, 1, 1, 1, Elsewhere());
  EXPECT_THROW(RmsNorm<float>(here, here, 1e-5, one_there, here), Error);
  EXPECT_THROW(RmsNormGradient<float>(here, here, here, one, there, here), Error);
  EXPECT_THROW(LayerNorm<float>(here, here, there, 1e-5, one, one, here), Error);
  EXPECT_THROW(LayerNormGradient<float>(here, here, here, one, one, here, there, here), Error);
  EXPECT_THROW(UnitNorm<float>(here, one_there, here), Error);
  EXPECT_THROW(UnitNormGradient<float>(there, here, one, here), Error);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[3], 4);
}

// No kernels at all without CUDA, and none of float64.
TEST(RequireHost, OperationsRefuseADeviceWithoutKernels) {
  double values[2] = {1, 2};
  const MatrixSpan<double> there(values, 1, 2, 2, Elsewhere());
  EXPECT_EQ(ErrorOf([&] { Fill<double>(0, there); }), "filling has no kernel for a device yet");
  EXPECT_THROW(ScaleBy<double>(2, there), Error);
  EXPECT_THROW(Gelu<double>(there, there), Error);
  EXPECT_THROW(RoundTo<double>(MakeEncodePlan(ParseFormat("bf16").spec), there), Error);
  if (!NUMSIM_HAVE_CUDA) {
    float narrow[2] = {1, 2};
    EXPECT_THROW(Fill<float>(0, MatrixSpan<float>(narrow, 1, 2, 2, Elsewhere())), Error);
  }
}

TEST(RequireHost, OperationsNameTwoPlaces) {
  float values[4] = {1, 2, 3, 4};
  const MatrixSpan<float> here(values, 1, 4), there(values, 1, 4, 4, Elsewhere());
  const std::string error = ErrorOf([&] { Gelu<float>(here, there); });
  EXPECT_NE(error.find("GELU"), std::string::npos) << error;
  EXPECT_NE(error.find("device"), std::string::npos) << error;
}

}  // namespace
}  // namespace numsim
