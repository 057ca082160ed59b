// A pass takes no memory of the size of a tensor after the first of its kind.
#include <gtest/gtest.h>

#include <cstddef>

#include "numsim/base/parallel.h"
#include "numsim/models/model.h"
#include "tests/models/allocation_count.h"
#include "tests/models/language_model_problem.h"

namespace numsim {
namespace {

template <typename T>
size_t AllocationsOfAPass(Model<T>& model, const Batch& batch) {
  for (int i = 0; i < 2; ++i) {
    model.Forward({}, batch);
    model.Backward({});
  }
  const size_t before = LargeAllocations();
  model.Forward({}, batch);
  model.Backward({});
  return LargeAllocations() - before;
}

// On one thread: others take their scratch when they get a first task, whenever that is. What grows
// with width and tokens is larger than kLargeAllocation in these models.
TEST(ModelAllocation, PassesTakeNoTensorsAfterTheFirst) {
  const int threads = ThreadCount();
  SetThreadCount(1);
  for (ModelConfig config : LanguageModelConfigs()) {
    config.width = config.hidden = 48;
    config.vocabulary = 64;
    config.context = 64;
    for (const char* const kind : {"standard", "switchback", "te-hybrid", "mx"}) {
      SCOPED_TRACE(Describe(config) + " " + kind);
      LinearPrecision precision;
      precision.all.kind = kind;
      const Batch batch = RandomText(2, config.context, config.vocabulary, 41);
      EXPECT_EQ(AllocationsOfAPass(*MakeModel<float>(config, precision, 1), batch), 0U);
    }
    const Batch batch = RandomText(2, config.context, config.vocabulary, 42);
    EXPECT_EQ(AllocationsOfAPass(*MakeModel<double>(config, {}, 1), batch), 0U);
  }
  SetThreadCount(threads);
}

}  // namespace
}  // namespace numsim
