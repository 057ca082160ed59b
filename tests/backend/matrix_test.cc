// Views, buffers and places.
#include "numsim/backend/matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "numsim/backend/float_matrix.h"
#include "tests/support/elsewhere.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

bool Aligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 64 == 0; }

TEST(MatrixSpan, PartsAreViewsOfTheSameElements) {
  float values[12];
  std::iota(values, values + 12, 0.0f);
  const MatrixSpan<float> m(values, 3, 4);
  EXPECT_EQ(m.Row(2)[1], 9);
  EXPECT_EQ(m.Rows(1, 2).Row(1)[3], 11);
  const MatrixSpan<float> columns = m.Columns(1, 2);
  EXPECT_EQ(columns.Row(2)[1], 10);
  EXPECT_EQ(columns.stride, 4u);
  EXPECT_TRUE(m.Contiguous());
  EXPECT_FALSE(columns.Contiguous());
  EXPECT_TRUE(columns.Rows(0, 1).Contiguous());
  EXPECT_EQ(m.As(2, 6).Row(1)[5], 11);
  EXPECT_EQ(m.Span().size(), 12u);
  const MatrixSpan<const float> readable = columns;
  EXPECT_EQ(readable.Row(1)[0], 5);
}

TEST(MatrixSpan, AsAndSpanNeedAllElementsInOnePiece) {
  float values[12] = {};
  const MatrixSpan<float> m(values, 3, 4);
  EXPECT_EQ(ErrorOf([&] { m.As(3, 3); }), "As: 3 x 3 of a 3 x 4 matrix with stride 4");
  EXPECT_EQ(ErrorOf([&] { m.Columns(0, 2).As(3, 2); }),
            "As: 3 x 2 of a 3 x 2 matrix with stride 4");
  EXPECT_EQ(ErrorOf([&] { m.Columns(0, 2).Span(); }),
            "Span: 3 x 2 elements with stride 4 on the host");
}

TEST(Buffer, StartsEmpty) {
  const Buffer<float> buffer;
  EXPECT_EQ(buffer.View().Elements(), 0u);
}

TEST(Buffer, GrowsAndKeepsItsFirstElements) {
  Buffer<int32_t> buffer;
  const MatrixSpan<int32_t> small = buffer.Resize(2, 3);
  std::iota(small.data, small.data + 6, 1);
  const MatrixSpan<int32_t> large = buffer.Resize(50, 7);
  ASSERT_EQ(large.rows, 50u);
  ASSERT_EQ(large.stride, 7u);
  for (int32_t i = 0; i < 6; ++i) EXPECT_EQ(large.data[i], i + 1);
  EXPECT_EQ(buffer.View().data, large.data);
}

TEST(Buffer, TakesNoMemoryForWhatFits) {
  Buffer<double> buffer;
  double* const data = buffer.Resize(10, 10).data;
  EXPECT_EQ(buffer.Resize(3, 5).data, data);
  EXPECT_EQ(buffer.View().Elements(), 15u);
  EXPECT_EQ(buffer.Resize(0, 5).data, data);
  EXPECT_EQ(buffer.Resize(5, 20).data, data);
}

TEST(Buffer, LiesAtCacheLines) {
  for (const size_t n : {1, 3, 17, 1000, 100001}) {
    Buffer<float> floats;
    Buffer<double> doubles;
    EXPECT_TRUE(Aligned(floats.Resize(1, n).data)) << n;
    EXPECT_TRUE(Aligned(doubles.Resize(1, n).data)) << n;
  }
}

TEST(Buffer, MovesWithoutCopying) {
  Buffer<float> a;
  a.Resize(2, 2).data[3] = 7;
  float* const data = a.View().data;
  Buffer<float> b = std::move(a);
  EXPECT_EQ(b.View().data, data);
  EXPECT_EQ(a.View().Elements(), 0u);  // NOLINT(bugprone-use-after-move): as documented
  Buffer<float> c;
  c.Resize(1, 1);
  c = std::move(b);
  EXPECT_EQ(c.View().data, data);
  EXPECT_EQ(c.View().data[3], 7);
  EXPECT_EQ(a.Resize(3, 3).Elements(), 9u);  // usable as before
}

TEST(Buffer, ACopyHasMemoryOfItsOwn) {
  Buffer<float> a;
  std::ranges::fill(a.Resize(2, 3).Span(), 1.0f);
  Buffer<float> b = a;
  b.Span()[0] = 2;
  EXPECT_EQ(a.Span()[0], 1);
  EXPECT_EQ(b.View().rows, 2u);
  a = b;
  EXPECT_EQ(a.Span()[0], 2);
  EXPECT_NE(a.View().data, b.View().data);
  const Buffer<float> moved = std::move(b);
  EXPECT_EQ(moved.Span()[0], 2);
}

TEST(Buffer, KnowsItsPlace) {
  EXPECT_EQ(Buffer<float>().place(), Place());
  EXPECT_EQ(Buffer<float>(Elsewhere()).place(), Elsewhere());
}

TEST(Buffer, RenewedElementsNeedNoCopy) {
  Buffer<float> buffer;
  buffer.Resize(2, 2).data[3] = 7;
  const float* const memory = buffer.View().data;
  EXPECT_EQ(buffer.Renew(1, 4).data, memory);  // large enough
  EXPECT_EQ(buffer.Renew(3).cols, 3u);
  EXPECT_EQ(buffer.Resize(1, 4).data[3], 7);
  EXPECT_EQ(buffer.Renew(5, 5).Elements(), 25u);
  EXPECT_THROW(buffer.Renew(SIZE_MAX, 2), Error);
}

TEST(Buffer, BorrowsMemoryThatItNeitherFreesNorExceeds) {
  std::vector<float> lent(6, 1.0f);
  Buffer<float> buffer;
  buffer.Resize(10, 10);
  buffer.Borrow(lent);
  EXPECT_EQ(buffer.Resize(2, 3).data, lent.data());
  buffer.Span()[5] = 4;
  EXPECT_EQ(lent[5], 4);
  EXPECT_THROW(buffer.Resize(2, 4), Error);
  EXPECT_THROW(buffer.Renew(7), Error);
  EXPECT_EQ(buffer.View().data, lent.data());  // as it was
  EXPECT_EQ(buffer.View().Elements(), 6u);
  Buffer<float> copy = buffer;  // owns its memory
  EXPECT_NE(copy.View().data, lent.data());
  EXPECT_EQ(copy.Resize(3, 3).data[5], 4);
  Buffer<float> moved = std::move(buffer);
  EXPECT_EQ(moved.View().data, lent.data());
  EXPECT_EQ(buffer.Resize(3, 3).Elements(), 9u);  // borrows no more
  EXPECT_THROW(moved.Borrow({lent.data(), MatrixShape{1, 6}, Elsewhere()}), Error);
}

TEST(FloatSpan, Bf16OnTheHostIsFloat32InMemory) {
  float memory[16] = {};
  const FloatSpan here(memory, {4, 4}, Place(), Element::kBfloat16);
  EXPECT_EQ(here.Bytes(), 64u);
  EXPECT_FALSE(here.IsBf16Memory());
  EXPECT_EQ(here.Float32().data, memory);
  EXPECT_THROW(here.Bf16(), Error);
}

TEST(FloatSpan, Bf16OnADeviceIsNotToBeReadAsFloat32) {
  uint16_t memory[16] = {};
  const FloatSpan there(memory, {4, 4}, Elsewhere(), Element::kBfloat16);
  EXPECT_EQ(there.Bytes(), 32u);
  EXPECT_EQ(there.Bf16().data, memory);
  EXPECT_EQ(there.Bf16().place, Elsewhere());
  EXPECT_THROW(there.Float32(), Error);
  const ConstFloatSpan read = there;
  EXPECT_EQ(read.element, Element::kBfloat16);
}

TEST(FloatSpan, TakesVectorsAndMatricesOfFloat32) {
  std::vector<float> values(6);
  const FloatSpan row = values;
  EXPECT_EQ(row.rows, 1u);
  EXPECT_EQ(row.cols, 6u);
  const ConstFloatSpan matrix = HostMatrix(values, {2, 3});
  EXPECT_EQ(matrix.Float32().Row(1), values.data() + 3);
  EXPECT_TRUE(matrix.Contiguous());
}

TEST(OnePlace, ThrowsForArgumentsOfSeveralPlaces) {
  EXPECT_EQ(OnePlace("Test", {Place(), Place()}), Place());
  EXPECT_EQ(OnePlace("Test", {Elsewhere()}), Elsewhere());
  EXPECT_EQ(ErrorOf([] {
              OnePlace("Test", {Place(), Elsewhere()});
            }),
            "Test: arguments on the host and on the device, expected one place");
}

TEST(MatrixSpan, HostMatrixAndCopiesCheckSizes) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(HostMatrix(std::span(values), {2, 3}).Row(1)[0], 4);
  EXPECT_THROW(HostMatrix(std::span(values), {2, 4}), Error);
  Buffer<float> to;
  EXPECT_THROW(CopyMatrix<float>(HostMatrix(std::span(values), {2, 3}), to.Resize(2, 2)), Error);
  CopyMatrix<float>(HostMatrix(std::span(values), {2, 3}), to.Resize(2, 3));
  EXPECT_EQ(ToVector(to.View()), values);
}

TEST(Buffer, EnsureAtKeepsWhatFitsAndEmptiesTheRest) {
  Buffer<float> buffer;
  const float* const data = buffer.Resize(2, 2).data;
  buffer.EnsureAt(Place());
  EXPECT_EQ(buffer.View().data, data);
  buffer.EnsureAt(Elsewhere());
  EXPECT_EQ(buffer.place(), Elsewhere());
  EXPECT_EQ(buffer.View().Elements(), 0u);
  buffer.EnsureAt(Place());
  EXPECT_EQ(buffer.View().Elements(), 0u);
}

}  // namespace
}  // namespace numsim
