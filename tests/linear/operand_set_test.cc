#include <gtest/gtest.h>

#include <set>

#include "numsim/linear/linear_recipe.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

OperandSet SetOf(unsigned bits) {
  OperandSet set;
  for (int i = 0; i < kLinearOperands; ++i) {
    if ((bits >> i & 1u) != 0) set.Insert(static_cast<LinearOperand>(i));
  }
  return set;
}

OperandSet SetOf(std::initializer_list<LinearOperand> operands) {
  OperandSet set;
  for (const LinearOperand operand : operands) set.Insert(operand);
  return set;
}

TEST(OperandSet, HoldsWhatWasInsertedAndNotRemoved) {
  OperandSet set;
  EXPECT_TRUE(set.Empty());
  set.Insert(LinearOperand::kInputGradientG);
  EXPECT_TRUE(set.Has(LinearOperand::kInputGradientG));
  EXPECT_FALSE(set.Has(LinearOperand::kWeightGradientG));
  EXPECT_FALSE(set.Empty());
  set.Remove(LinearOperand::kInputGradientW);
  EXPECT_FALSE(set.Empty());
  set.Remove(LinearOperand::kInputGradientG);
  EXPECT_EQ(set, OperandSet());
  for (int i = 0; i < kLinearOperands; ++i) {
    EXPECT_TRUE(OperandSet::All().Has(static_cast<LinearOperand>(i)));
  }
  EXPECT_EQ(OperandSet::All(), SetOf(63));
}

TEST(OperandSet, EachOfThe64ReadsBackFromItsText) {
  std::set<std::string> texts;
  for (unsigned bits = 0; bits < 64; ++bits) {
    const OperandSet set = SetOf(bits);
    EXPECT_TRUE(texts.insert(Text(set)).second) << Text(set);
    EXPECT_EQ(ParseOperandSet(Text(set)), set) << Text(set);
  }
}

TEST(OperandSet, PartsAreTheOperandsOfTheirNames) {
  using O = LinearOperand;
  EXPECT_EQ(ParseOperandSet(""), OperandSet());
  EXPECT_EQ(ParseOperandSet("x"), SetOf({O::kForwardX, O::kWeightGradientX}));
  EXPECT_EQ(ParseOperandSet("w"), SetOf({O::kForwardW, O::kInputGradientW}));
  EXPECT_EQ(ParseOperandSet("g"), SetOf({O::kInputGradientG, O::kWeightGradientG}));
  EXPECT_EQ(ParseOperandSet("forward.x"), SetOf({O::kForwardX}));
  EXPECT_EQ(ParseOperandSet("forward.w"), SetOf({O::kForwardW}));
  EXPECT_EQ(ParseOperandSet("input-gradient.g"), SetOf({O::kInputGradientG}));
  EXPECT_EQ(ParseOperandSet("input-gradient.w"), SetOf({O::kInputGradientW}));
  EXPECT_EQ(ParseOperandSet("weight-gradient.g"), SetOf({O::kWeightGradientG}));
  EXPECT_EQ(ParseOperandSet("weight-gradient.x"), SetOf({O::kWeightGradientX}));
  EXPECT_EQ(ParseOperandSet("forward"), SetOf({O::kForwardX, O::kForwardW}));
  EXPECT_EQ(ParseOperandSet("input-gradient"), SetOf({O::kInputGradientG, O::kInputGradientW}));
  EXPECT_EQ(ParseOperandSet("weight-gradient"), SetOf({O::kWeightGradientG, O::kWeightGradientX}));
  EXPECT_EQ(ParseOperandSet("g,forward.x,g"),
            SetOf({O::kForwardX, O::kInputGradientG, O::kWeightGradientG}));
}

TEST(OperandSet, TextPutsWholeTensorsFirst) {
  EXPECT_EQ(Text(OperandSet()), "");
  EXPECT_EQ(Text(OperandSet::All()), "x,w,g");
  EXPECT_EQ(Text(ParseOperandSet("weight-gradient.x,input-gradient.w,forward.x")),
            "x,input-gradient.w");
  EXPECT_EQ(Text(ParseOperandSet("weight-gradient.x,forward.w")), "forward.w,weight-gradient.x");
}

TEST(OperandSet, IsOfTensorsWhereNoneIsHalved) {
  size_t whole = 0;
  for (unsigned bits = 0; bits < 64; ++bits) {
    const OperandSet set = SetOf(bits);
    const bool no_dot = Text(set).find('.') == std::string::npos;
    EXPECT_EQ(set.IsOfTensors(), no_dot) << Text(set);
    whole += set.IsOfTensors();
  }
  EXPECT_EQ(whole, 8u);
}

TEST(ParseOperandSet, RefusesWhatIsNoPartAndListsThem) {
  for (const char* const text :
       {"y", "X", "forwards", "forward.g", "x,", ",x", ",", "x w", " x", "weight_gradient.x"}) {
    const std::string message = ErrorOf([&] { ParseOperandSet(text); });
    ExpectMessage(message, {"x, w, g, forward.x", "weight-gradient.x"});
  }
  ExpectMessage(ErrorOf([] { ParseOperandSet("x,forward.g"); }), {"'forward.g'"});
}

}  // namespace
}  // namespace numsim
