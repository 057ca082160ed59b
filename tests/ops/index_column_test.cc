#include "numsim/ops/shared/index_column.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/elsewhere.h"

namespace numsim {
namespace {

TEST(IndexColumn, HoldsACopyOfWhatWasUploadedLast) {
  IndexColumn column;
  EXPECT_EQ(column.View().rows, 0u);
  std::vector<int32_t> indices = {3, -1, 7};
  const IndexRef view = column.Upload(indices);
  indices.assign(3, 0);
  ASSERT_EQ(view.rows, 3u);
  EXPECT_EQ(view.cols, 1u);
  EXPECT_EQ(view.Row(0)[0], 3);
  EXPECT_EQ(view.Row(1)[0], -1);
  EXPECT_EQ(view.Row(2)[0], 7);
  column.Upload(std::vector<int32_t>{5});
  ASSERT_EQ(column.View().rows, 1u);
  EXPECT_EQ(column.View().data[0], 5);
}

TEST(IndexColumn, FewerIndicesTakeNoNewMemory) {
  IndexColumn column;
  const int32_t* const first = column.Upload(std::vector<int32_t>(100)).data;
  EXPECT_EQ(column.Upload(std::vector<int32_t>(40)).data, first);
}

TEST(IndexColumn, OnADeviceIsAnError) {
  IndexColumn column(Elsewhere());
  EXPECT_THROW(column.Upload(std::vector<int32_t>(3)), Error);
}

}  // namespace
}  // namespace numsim
