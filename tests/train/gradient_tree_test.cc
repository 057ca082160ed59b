// The tree of gradient_tree.h against a recursion that is written out here, and where a training
// uses it.
#include "numsim/train/internal/gradient_tree.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/random/distributions.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

using Values = std::vector<float>;

// The sum of parts [begin, end) of one element: the definition.
float TreeSum(const std::vector<Values>& parts, size_t begin, size_t end, size_t element) {
  if (end - begin == 1) return parts[begin][element];
  const size_t middle = begin + (end - begin + 1) / 2;
  return TreeSum(parts, begin, middle, element) + TreeSum(parts, middle, end, element);
}

Values TreeSum(const std::vector<Values>& parts, size_t begin, size_t end) {
  Values sum;
  for (size_t i = 0; i < parts[0].size(); ++i) sum.push_back(TreeSum(parts, begin, end, i));
  return sum;
}

// Gradients of many magnitudes, of two parameters, so that nearly every order of additions has
// other bits.
std::vector<Values> DrawnParts(size_t count, size_t elements) {
  std::vector<Values> parts;
  for (size_t part = 0; part < count; ++part) {
    parts.emplace_back(elements);
    FillNormal({3, part}, 0, parts.back());
    for (float& x : parts.back()) x = x * x * x * x * x;
  }
  return parts;
}

constexpr size_t kRows = 3, kCols = 41, kBias = 7, kElements = kRows * kCols + kBias;

// Returns the sum that the class leaves in the parameters.
Values Added(const std::vector<Values>& parts, GradientTree& tree) {
  ParameterList<float> parameters(1);
  parameters.Add("a", ParameterRole::kMatrix, kRows, kCols, {});
  parameters.Add("b", ParameterRole::kBias, 1, kBias, {});
  for (size_t part = 0; part < parts.size(); ++part) {
    const float* from = parts[part].data();
    for (Parameter<float>& parameter : parameters) {
      const std::span<float> gradient = parameter.gradient.View().Span();
      std::memcpy(gradient.data(), from, gradient.size_bytes());
      from += gradient.size();
    }
    tree.Add(part, parts.size(), parameters);
  }
  Values sum;
  for (Parameter<float>& parameter : parameters) {
    const std::span<const float> gradient = parameter.gradient.View().Span();
    sum.insert(sum.end(), gradient.begin(), gradient.end());
  }
  return sum;
}

TEST(GradientTree, IsTheRecursionForEveryNumberOfParts) {
  GradientTree tree;  // one for all: its memory is used again
  for (size_t count = 1; count <= 33; ++count) {
    const std::vector<Values> parts = DrawnParts(count, kElements);
    EXPECT_EQ(Added(parts, tree), TreeSum(parts, 0, count)) << count;
  }
}

TEST(GradientTree, DoesNotDependOnThreads) {
  const int threads = ThreadCount();
  const std::vector<Values> parts = DrawnParts(11, kElements);
  for (const int count : {1, 2, 5}) {
    SetThreadCount(count);
    GradientTree tree;
    EXPECT_EQ(Added(parts, tree), TreeSum(parts, 0, 11)) << count;
  }
  SetThreadCount(threads);
}

// Machines that share the parts: each adds up its own, and the sums are parts of a smaller tree.
TEST(GradientTree, EqualSharesAreSubtrees) {
  for (const size_t count : {4, 6, 12, 20, 24, 32}) {
    const std::vector<Values> parts = DrawnParts(count, kElements);
    for (size_t machines = 1; machines <= 8 && count % machines == 0; machines *= 2) {
      const size_t share = count / machines;
      std::vector<Values> sums;
      for (size_t i = 0; i < machines; ++i) {
        const auto first = parts.begin() + static_cast<std::ptrdiff_t>(i * share);
        GradientTree tree;
        sums.push_back(Added({first, first + static_cast<std::ptrdiff_t>(share)}, tree));
      }
      GradientTree tree;
      EXPECT_EQ(Added(sums, tree), TreeSum(parts, 0, count)) << count << ", " << machines;
    }
  }
}

// By counting: node [begin, end) is complete once part end - 1 is there.
size_t CountNodesThatEndAt(size_t part, size_t begin, size_t end) {
  if (end - begin == 1) return 0;
  const size_t middle = begin + (end - begin + 1) / 2;
  return (part + 1 == end ? 1 : 0) + CountNodesThatEndAt(part, begin, middle) +
         CountNodesThatEndAt(part, middle, end);
}

TEST(NodesCompletedBy, AreThoseWhoseLastPartItIs) {
  for (size_t parts = 1; parts <= 64; ++parts) {
    size_t waiting = 0, most = 0, all = 0;
    for (size_t part = 0; part < parts; ++part) {
      const size_t nodes = NodesCompletedBy(part, parts);
      EXPECT_EQ(nodes, CountNodesThatEndAt(part, 0, parts)) << part << " of " << parts;
      all += nodes;
      ASSERT_LE(nodes, waiting) << part << " of " << parts;
      waiting -= nodes;
      if (part + 1 < parts) most = std::max(most, ++waiting);
    }
    EXPECT_EQ(all, parts - 1);
    EXPECT_EQ(waiting, 0u);
    EXPECT_LE(size_t{1} << most, parts) << "more than log2(parts) sums wait";
  }
}

std::vector<Values> GradientsOf(const ParameterList<float>& parameters) {
  std::vector<Values> gradients;
  for (const Parameter<float>& parameter : parameters) {
    const std::span<const float> gradient = parameter.gradient.View().Span();
    gradients.emplace_back(gradient.begin(), gradient.end());
  }
  return gradients;
}

// A training whose parts are computed here one by one, from weights that do not change.
TEST(Trainer, PartsOfABatchAreTheTreeOfTheirSingleGradients) {
  for (const size_t parts : {2, 4, 6}) {
    TrainConfig config = TinyConfig();
    config.train.batch = 12;
    config.train.accumulate = parts;
    const std::shared_ptr<const DataSource> data = OpenShared(config.data);
    Trainer trainer(config, data);
    const auto model = MakeModel<float>(trainer.config().model, config.linear, config.train.seed);
    std::vector<std::vector<Values>> single(model->parameters().size());  // by parameter, by part
    Batch batch;
    for (size_t part = 0; part < parts; ++part) {
      Pass<float> pass;
      pass.seed = config.train.seed;
      pass.step = part;
      pass.loss_scale = 1 / static_cast<double>(parts);
      const uint64_t order = DeriveSeed(config.train.seed, RandomPurpose::kShuffle);
      data->TrainBatch(order, part, 12 / parts, 16, batch);
      model->Forward(pass, batch);
      model->Backward(pass);
      size_t i = 0;
      for (const Values& gradient : GradientsOf(model->parameters())) {
        single[i++].push_back(gradient);
      }
    }
    trainer.Step();
    size_t i = 0;
    for (const Values& sum : GradientsOf(trainer.model().parameters())) {
      EXPECT_EQ(sum, TreeSum(single[i], 0, parts)) << parts << " parts, parameter " << i;
      ++i;
    }
  }
}

}  // namespace
}  // namespace numsim
