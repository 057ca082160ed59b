#include <gtest/gtest.h>

#include <memory>

#include "numsim/base/parallel.h"

namespace numsim {
namespace {

int Apply(FunctionRef<int(int)> function, int x) { return function(x); }

TEST(FunctionRef, CallsLambdasWithTheirState) {
  int calls = 0;
  EXPECT_EQ(Apply([&](int x) { return ++calls + x; }, 10), 11);
  EXPECT_EQ(Apply([&](int x) { return ++calls + x; }, 10), 12);
  EXPECT_EQ(calls, 2);
}

TEST(FunctionRef, CallsMutableAndConstObjectsThemselvesAndNoCopies) {
  struct Counter {
    int count = 0;
    int operator()(int x) { return count += x; }
  };
  Counter counter;
  EXPECT_EQ(Apply(counter, 3), 3);
  EXPECT_EQ(Apply(counter, 4), 7);
  EXPECT_EQ(counter.count, 7);
  const auto half = [](int x) { return x / 2; };
  EXPECT_EQ(Apply(half, 8), 4);
}

TEST(FunctionRef, PassesReferencesOn) {
  const auto set = [](int& x) { x = 5; };
  const FunctionRef<void(int&)> ref(set);
  int x = 0;
  ref(x);
  EXPECT_EQ(x, 5);
}

TEST(FunctionRef, PassesWhatCanOnlyBeMoved) {
  const auto take = [](std::unique_ptr<int> p) { return *p; };
  const FunctionRef<int(std::unique_ptr<int>)> ref(take);
  EXPECT_EQ(ref(std::make_unique<int>(7)), 7);
}

}  // namespace
}  // namespace numsim
