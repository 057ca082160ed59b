// Calls of a linear layer whose matrices do not have its shape throw Error.
#include "tests/support/misuse.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "numsim/linear/linear.h"

namespace numsim {
namespace {

// A layer of 5 inputs and 3 outputs, and 4 tokens.
struct MisusedLayer {
  explicit MisusedLayer(std::string kind) : layer(MakeLinearRecipe({.kind = std::move(kind)})) {
    layer.Forward(HostMatrix(x, shape.X()), HostMatrix(w, shape.W()), y, saved);
  }

  Linear layer;
  LinearShape shape{.tokens = 4, .in = 5, .out = 3};
  std::vector<float> x = std::vector<float>(20, 1.0f), w = std::vector<float>(15, 1.0f);
  std::vector<float> y = std::vector<float>(12), g = y;
  std::vector<float> dx = std::vector<float>(20), dw = std::vector<float>(15);
  std::vector<float> wrong = std::vector<float>(11);
  LinearSaved saved;
};

TEST(LinearMisuse, MatricesOfAnotherSizeThrow) {
  for (const LinearKind& kind : LinearKinds()) {
    SCOPED_TRACE(kind.name);
    MisusedLayer p{std::string(kind.name)};
    LinearSaved none;
    ExpectErrors({
        {[&] {
           p.layer.Forward(
               HostMatrix(p.x, p.shape.X()), HostMatrix(p.w, p.shape.W()), p.y, p.saved);
         },
         kNoError},
        {[&] { p.layer.Backward(p.g, p.w, p.saved, p.dx, p.dw); }, kNoError},
        {[&] {
           p.layer.Forward(
               HostMatrix(p.wrong, p.shape.X()), HostMatrix(p.w, p.shape.W()), p.y, none);
         },
         "HostMatrix: 'values' has 11 elements, expected 20 (4 x 5)"},
        {[&] {
           p.layer.Forward(
               HostMatrix(p.x, p.shape.X()), HostMatrix(p.wrong, p.shape.W()), p.y, none);
         },
         "HostMatrix: 'values' has 11 elements, expected 15 (3 x 5)"},
        {[&] {
           p.layer.Forward(
               HostMatrix(p.x, p.shape.X()), HostMatrix(p.w, p.shape.W()), p.wrong, none);
         },
         "Linear: 'y' has 11 elements, expected 12 (4 x 3)"},
        {[&] { p.layer.Backward(p.wrong, p.w, p.saved, p.dx, p.dw); },
         "Linear: 'g' has 11 elements, expected 12 (4 x 3)"},
        {[&] { p.layer.Backward(p.g, p.w, p.saved, p.wrong, p.dw); },
         "Linear: 'dx' has 11 elements, expected 20 (4 x 5)"},
        {[&] { p.layer.Backward(p.g, p.w, p.saved, p.dx, p.wrong); },
         "Linear: 'dw' has 11 elements, expected 15 (3 x 5)"},
    });
  }
}

TEST(LinearMisuse, BackwardNeedsAForward) {
  MisusedLayer p("switchback");
  LinearSaved empty;
  empty.shape = p.shape;
  EXPECT_EQ(ErrorOf([&] { p.layer.Backward(p.g, p.w, empty, p.dx, p.dw); }),
            "Linear::Backward: 'saved' has 0 matrices, expected 1, those of a Forward");
}

TEST(LinearMisuse, ChannelsAndAContainerExcludeEachOther) {
  MisusedLayer p("switchback");
  Linear contained(MakeLinearRecipe({.kind = "switchback", .format = "e3m4", .container = "bf16"}));
  const std::vector<float> channels(5, 2.0f);
  ExpectErrors({
      {[&] {
         p.layer.Forward(HostMatrix(p.x, p.shape.X()),
                         HostMatrix(p.w, p.shape.W()),
                         p.y,
                         p.saved,
                         {},
                         nullptr,
                         false,
                         channels);
       },
       kNoError},
      {[&] {
         contained.Forward(HostMatrix(p.x, p.shape.X()),
                           HostMatrix(p.w, p.shape.W()),
                           p.y,
                           p.saved,
                           {},
                           nullptr,
                           false,
                           channels);
       },
       "Linear: 5 channels of a layer whose operands enter in a container"},
  });
}

TEST(LinearMisuse, RecipesThatBreakTheRulesThrow) {
  LinearRecipe columns = MakeLinearRecipe({.kind = "switchback"});
  columns[LinearGemm::kForward].a.layout.granularity = Granularity::kColumn;
  LinearRecipe kept = MakeLinearRecipe({.kind = "switchback"});
  kept.saves = LinearSaves::kQuantized;
  kept[LinearGemm::kForward].b.layout.granularity = Granularity::kRow;
  LinearRecipe delayed = MakeLinearRecipe({.kind = "switchback"});
  delayed[LinearGemm::kForward].a.delayed = true;
  ExpectErrors({
      {[&] { Linear layer(columns); },
       "Linear: recipe 'switchback': expected a layout other than column"},
      {[&] { Linear layer(kept); }, "Linear: recipe 'switchback': expected equal operands of W"},
      {[&] { Linear layer(delayed); },
       "Linear: recipe 'switchback': expected delayed scaling of all quantised operands or of "
       "none"},
  });
}

}  // namespace
}  // namespace numsim
