// Operations on matrices of a device: results are those of the host, bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/ops/elementwise.h"
#include "numsim/ops/loss.h"
#include "numsim/ops/shared/activation.h"
#include "numsim/ops/shared/norm.h"
#include "numsim/ops/shared/sequence.h"
#include "numsim/random/distributions.h"
#include "tests/support/device_test.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

// A matrix at a place, whose rows have gaps behind them.
class Placed {
 public:
  Placed(std::vector<float> values, MatrixShape shape, Place place)
      : shape_(shape),
        memory_(CopyAt(HostMatrix(values, {shape.rows, shape.cols + kGap}), place)) {}

  MatrixSpan<float> View() { return memory_.View().Columns(0, shape_.cols); }
  std::vector<float> Values() const { return ToVector(memory_.View()); }

  static std::vector<float> Normal(MatrixShape shape, uint64_t seed) {
    std::vector<float> values(shape.rows * (shape.cols + kGap));
    FillNormal({seed, 0}, 0, values);
    return values;
  }

 private:
  static constexpr size_t kGap = 3;
  MatrixShape shape_;
  Buffer<float> memory_;
};

using Views = std::vector<MatrixSpan<float>>;

// An operation with the shapes of its matrices; results have values before, too.
struct PlacedOperation {
  std::string name;
  std::vector<MatrixShape> inputs, results;
  std::function<double(const Views& in, const Views& out, IndexRef ids)> run;
};

// Returns all memory of the results after the operation, and what it returned.
std::vector<float> ResultsAt(const PlacedOperation& operation,
                             const std::vector<int32_t>& ids,
                             Place place) {
  std::vector<Placed> in, out;
  for (size_t i = 0; i < operation.inputs.size(); ++i) {
    const MatrixShape shape = operation.inputs[i];
    in.emplace_back(Placed::Normal(shape, i + 1), shape, place);
  }
  for (size_t i = 0; i < operation.results.size(); ++i) {
    const MatrixShape shape = operation.results[i];
    out.emplace_back(Placed::Normal(shape, i + 100), shape, place);
  }
  Views ins, outs;
  for (Placed& matrix : in) ins.push_back(matrix.View());
  for (Placed& matrix : out) outs.push_back(matrix.View());
  const Buffer<int32_t> indices = CopyAt(ids, place);
  const auto returned =
      std::bit_cast<uint64_t>(operation.run(ins, outs, indices.View().As(ids.size(), 1)));
  std::vector<float> all = {static_cast<float>(returned >> 48),
                            static_cast<float>(returned >> 24 & 0xFFFFFF),
                            static_cast<float>(returned & 0xFFFFFF)};
  for (const Placed& matrix : out) {
    const std::vector<float> values = matrix.Values();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// Operations on `rows` rows of n elements. Rows are sequences of `length`, and indices tokens of 50.
std::vector<PlacedOperation> Operations(size_t rows, size_t length, size_t n) {
  const MatrixShape full = {rows, n}, wide = {rows, 2 * n}, row = {1, n}, column = {rows, 1};
  const MatrixShape table = {50, n}, positions = {length, n}, first = {rows / length, n};
  const MatrixShape longer = {rows / length * (length + 1), n}, angles = {length, n / 2};
  using V = const Views&;
  using I = IndexRef;
  return {
      {"Copy", {full}, {full}, [](V x, V y, I) { return Copy<float>(x[0], y[0]), 0.0; }},
      {"CopyTransposed",
       {full},
       {{n, rows}},
       [](V x, V y, I) { return CopyTransposed<float>(x[0], y[0]), 0.0; }},
      {"Fill", {}, {full}, [](V, V y, I) { return Fill<float>(-0.0f, y[0]), 0.0; }},
      {"Add", {full, full}, {full}, [](V x, V y, I) { return Add<float>(x[0], x[1], y[0]), 0.0; }},
      {"ScaleBy", {}, {full}, [](V, V y, I) { return ScaleBy<float>(1.7f, y[0]), 0.0; }},
      {"AddBias", {row}, {full}, [](V x, V y, I) { return AddBias<float>(x[0], y[0]), 0.0; }},
      {"ColumnSums", {full}, {row}, [](V x, V y, I) { return ColumnSums<float>(x[0], y[0]), 0.0; }},
      {"AddScaledBranch",
       {full, full, row},
       {full},
       [](V x, V y, I) { return AddScaledBranch<float>(x[0], x[1], x[2], y[0]), 0.0; }},
      {"AddScaledBranchGradient",
       {full, full, row},
       {full, row},
       [](V x, V y, I) {
         return AddScaledBranchGradient<float>(x[0], x[1], x[2], y[0], y[1]), 0.0;
       }},
      {"Gelu", {full}, {full}, [](V x, V y, I) { return Gelu<float>(x[0], y[0]), 0.0; }},
      {"GeluGradient",
       {full, full},
       {full},
       [](V x, V y, I) { return GeluGradient<float>(x[0], x[1], y[0]), 0.0; }},
      {"Relu", {full}, {full}, [](V x, V y, I) { return Relu<float>(x[0], y[0]), 0.0; }},
      {"ReluGradient",
       {full, full},
       {full},
       [](V x, V y, I) { return ReluGradient<float>(x[0], x[1], y[0]), 0.0; }},
      {"Swiglu", {wide}, {full}, [](V x, V y, I) { return Swiglu<float>(x[0], y[0]), 0.0; }},
      {"SwigluGradient",
       {full, wide},
       {wide},
       [](V x, V y, I) { return SwigluGradient<float>(x[0], x[1], y[0]), 0.0; }},
      {"RmsNorm",
       {full, row},
       {column, full},
       [](V x, V y, I) { return RmsNorm<float>(x[0], x[1], 1e-5, y[0], y[1]), 0.0; }},
      {"RmsNormGradient",
       {full, full, row, column},
       {row, full},
       [](V x, V y, I) { return RmsNormGradient<float>(x[0], x[1], x[2], x[3], y[0], y[1]), 0.0; }},
      {"LayerNorm",
       {full, row, row},
       {column, column, full},
       [](V x, V y, I) { return LayerNorm<float>(x[0], x[1], x[2], 1e-5, y[0], y[1], y[2]), 0.0; }},
      {"LayerNormGradient",
       {full, full, row, column, column},
       {row, row, full},
       [](V x, V y, I) {
         return LayerNormGradient<float>(x[0], x[1], x[2], x[3], x[4], y[0], y[1], y[2]), 0.0;
       }},
      {"UnitNorm",
       {full},
       {column, full},
       [](V x, V y, I) { return UnitNorm<float>(x[0], y[0], y[1]), 0.0; }},
      {"UnitNormGradient",
       {full, full, column},
       {full},
       [](V x, V y, I) { return UnitNormGradient<float>(x[0], x[1], x[2], y[0]), 0.0; }},
      {"GatherRows",
       {table},
       {full},
       [](V x, V y, I ids) { return GatherRows<float>(x[0], ids, y[0]), 0.0; }},
      {"GatherRowsGradient",
       {full},
       {table},
       [](V x, V y, I ids) { return GatherRowsGradient<float>(x[0], ids, y[0]), 0.0; }},
      {"AddPositions",
       {positions},
       {full},
       [](V x, V y, I) { return AddPositions<float>(x[0], y[0]), 0.0; }},
      {"AddPositionsGradient",
       {full},
       {positions},
       [](V x, V y, I) { return AddPositionsGradient<float>(x[0], y[0]), 0.0; }},
      {"RotatePositions",
       {angles, angles},
       {full},
       [n](V x, V y, I) {
         return RotatePositions<float>(x[0], x[1], n / 2 * 2, true, y[0].Columns(0, n / 2 * 2)),
                0.0;
       }},
      {"PrependToken",
       {full, row},
       {longer},
       [length](V x, V y, I) { return PrependToken<float>(x[0], length, x[1], y[0]), 0.0; }},
      {"PrependTokenGradient",
       {longer},
       {row, full},
       [length](V x, V y, I) {
         return PrependTokenGradient<float>(x[0], length, y[0], y[1]), 0.0;
       }},
      {"TakeRows",
       {full},
       {first},
       [length](V x, V y, I) { return TakeRows<float>(x[0], length, {}, y[0]), 0.0; }},
      {"TakeRowsGradient",
       {first},
       {full},
       [length](V x, V y, I) { return TakeRowsGradient<float>(x[0], length, {}, y[0]), 0.0; }},
      {"CutPatches",
       {{3, 8 * 12 * 3}},
       {{3 * 2 * 3, 4 * 4 * 3}},
       [](V x, V y, I) { return CutPatches<float>(x[0], 8, 12, 3, 4, y[0]), 0.0; }},
      {"CrossEntropy",
       {{rows, 50}},
       {{rows, 50}},
       [](V x, V y, I ids) {
         const LossSum loss = CrossEntropy<float>(x[0], ids, 0.75, y[0]);
         return loss.sum + 1000.0 * static_cast<double>(loss.correct);
       }},
      {"SquaredError",
       {full, full},
       {full},
       [](V x, V y, I) { return SquaredError<float>(x[0], x[1], 0.75, y[0]).sum; }},
  };
}

class OperationsOnDevice : public DeviceTest {};

TEST_F(OperationsOnDevice, GiveTheBitsOfTheHost) {
  for (const size_t rows : {6, 126, 300, 6000}) {
    for (const size_t n : {2, 16, 33, 256, 770, 1100}) {
      if (rows * n > 1000000 && n != 770) continue;  // one large matrix: the host takes long
      std::vector<int32_t> ids(rows);
      for (size_t i = 0; i < rows; ++i) {
        ids[i] = static_cast<int32_t>(i % 3 == 0 ? 7 : (i * i + i / 5) % 50);
      }
      for (const PlacedOperation& operation : Operations(rows, 6, n)) {
        SCOPED_TRACE(operation.name + ", " + std::to_string(rows) + " x " + std::to_string(n));
        const std::vector<float> host = ResultsAt(operation, ids, {}),
                                 device = ResultsAt(operation, ids, place());
        ASSERT_EQ(host.size(), device.size());
        size_t different = 0;
        for (size_t i = 0; i < host.size(); ++i) {
          const bool nan = std::isnan(host[i]) && std::isnan(device[i]);
          const auto a = std::bit_cast<uint32_t>(host[i]), b = std::bit_cast<uint32_t>(device[i]);
          different += nan || a == b ? 0 : 1;
        }
        EXPECT_EQ(different, 0u);
      }
    }
  }
}

TEST_F(OperationsOnDevice, RefuseTargetsThatAreNoClasses) {
  Buffer<float> logits(place());
  Fill<float>(1, logits.Renew(3, 4));
  const Buffer<int32_t> targets = CopyAt(std::vector<int32_t>{0, 4, -2}, place());
  EXPECT_EQ(ErrorOf([&] { CrossEntropy<float>(logits.View(), targets.View().As(3, 1), 1, {}); }),
            "CrossEntropy: 2 targets are none of 4 classes");
}

TEST_F(OperationsOnDevice, UploadAndRoundWhereTheMatrixIs) {
  const std::vector<float> values = {1.3f, -2.7f, 300, 3e-3f, 0};
  Buffer<float> there(place()), here{Place()};
  Upload<float>(values, there.Renew(1, values.size()));
  Upload<float>(values, here.Renew(1, values.size()));
  const EncodePlan plan = MakeEncodePlan(ParseFormat("e4m3fn").spec);
  RoundTo<float>(plan, there.View());
  RoundTo<float>(plan, here.View());
  EXPECT_EQ(ToVector(there.View()), ToVector(here.View()));
}

}  // namespace
}  // namespace numsim
