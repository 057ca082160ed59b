// The C interface from several threads at once.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <thread>

#include "tests/capi/capi_fixture.h"

namespace numsim::capi_test {
namespace {

// The work of one thread: a pass through every part, folded into a number.
uint64_t Pass(int which) {
  uint64_t sum = 0;
  const auto add = [&sum](uint64_t x) { sum = (sum ^ x) * 1099511628211u; };
  const char* const names[] = {"e4m3fn", "e5m2", "e4m3:bias=9", "int8"};
  const numsim_format_t format = CFormat(names[which % 4]), fp32 = CFormat("fp32");
  numsim_rounding_t rounding = numsim_rounding_default();
  rounding.mode = static_cast<int32_t>(
      kRoundingModes[static_cast<size_t>(which) % std::size(kRoundingModes)].mode);
  constexpr size_t kN = 40000;
  std::vector<float> in(kN), out(kN);
  std::vector<uint8_t> codes(kN), products(kN);
  for (size_t i = 0; i < kN; ++i) in[i] = static_cast<float>(i % 997) * 0.03f - 9.0f;
  const numsim_random_t random = {nullptr, static_cast<uint64_t>(which), 0, 0};
  add(static_cast<uint64_t>(
      numsim_encode_array_f32(in.data(), kN, &format, &rounding, &random, codes.data(), 1)));
  const numsim_codes_t operand = {format, codes.data(), 1, 0};
  uint8_t all = 0;
  add(static_cast<uint64_t>(numsim_arithmetic_array(NUMSIM_OPERATION_MULTIPLY,
                                                    &operand,
                                                    &operand,
                                                    nullptr,
                                                    kN,
                                                    &format,
                                                    &rounding,
                                                    &random,
                                                    products.data(),
                                                    1,
                                                    nullptr,
                                                    &all)));
  add(all);
  add(static_cast<uint64_t>(numsim_decode_array_f32(&format, products.data(), 1, kN, out.data())));
  for (size_t i = 0; i < kN; i += 101) {
    uint32_t code = 0;
    numsim_divide(
        &format, codes[i], &format, codes[kN - 1 - i], &fp32, &rounding, codes[i], &code, &all);
    add(code);
    add(products[i]);
    add(static_cast<uint64_t>(out[i] == out[i]));
  }
  constexpr size_t kVectors = 40, kInner = 100;
  const numsim_factor_t factor = {format, codes.data(), 1, which % 2, nullptr, {}};
  for (const char* rule : {"exact", "fp32", "hopper-fp8"}) {
    float sums[kVectors * kVectors];
    add(static_cast<uint64_t>(
        numsim_gemm(&factor, &factor, kVectors, kVectors, kInner, rule, sums, nullptr, 0)));
    for (const float x : sums) add(std::bit_cast<uint32_t>(x));
  }
  numsim_accumulator_info_t info;
  for (size_t i = 0; numsim_accumulator_info(i, &info) == NUMSIM_OK; ++i) {
    add(std::string(info.rule).size());
  }
  char message[100];
  numsim_format_t none;
  add(static_cast<uint64_t>(numsim_format_by_name("bad", &none, message, sizeof message)));
  add(static_cast<uint64_t>(std::string(message).size()));
  return sum;
}

TEST(CThreads, ResultsAreThoseOfOneThread) {
  constexpr int kThreads = 6, kPasses = 14;
  uint64_t expected[kPasses];
  for (int p = 0; p < kPasses; ++p) expected[p] = Pass(p);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&wrong, &expected, t] {
      for (int p = 0; p < kPasses; ++p) {
        const int which = (p + t) % kPasses;
        if (Pass(which) != expected[which]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Calls of every kind on single codes, each thread with its own format.
uint64_t SinglePass(int which) {
  const char* const names[] = {"e4m3fn", "e5m2", "bf16", "e2m1fn", "int8", "e8m0fnu"};
  const numsim_format_t f = CFormat(names[which % 6]);
  numsim_format_info_t info;
  EXPECT_EQ(numsim_format_info(&f, &info), NUMSIM_OK);
  const uint32_t mask = (uint32_t{1} << info.bits) - 1;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < 20000; ++i) {
    const uint32_t a = i * 2654435761u >> 8 & mask, b = i * 40503u >> 4 & mask;
    uint32_t code[8] = {};
    uint8_t flags[8] = {};
    int relation = 0;
    numsim_add(&f, a, &f, b, &f, nullptr, 0, code, flags);
    numsim_divide(&f, a, &f, b, &f, nullptr, 0, code + 1, flags + 1);
    numsim_fma(&f, a, &f, b, &f, a, &f, nullptr, 0, code + 2, flags + 2);
    numsim_sqrt(&f, a, &f, nullptr, 0, code + 3, flags + 3);
    numsim_encode_f32(i * 2654435761u, &f, nullptr, 0, code + 4, flags + 4);
    numsim_encode_f64(i * 0x9E3779B97F4A7C15u, &f, nullptr, 0, code + 5, flags + 5);
    numsim_extremum(NUMSIM_MAXIMUM, &f, a, &f, b, &f, nullptr, 0, code + 6, flags + 6);
    numsim_decode_f32(&f, a, code + 7);
    numsim_compare(&f, a, &f, b, &relation);
    for (int k = 0; k < 8; ++k) sum = (sum ^ code[k] ^ flags[k]) * 1099511628211u;
    sum += static_cast<uint64_t>(relation);
  }
  return sum;
}

TEST(CThreads, SingleOperationsDoNotDisturbEachOther) {
  constexpr int kThreads = 6;
  uint64_t expected[kThreads], found[kThreads] = {};
  for (int t = 0; t < kThreads; ++t) expected[t] = SinglePass(t);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&found, t] { found[t] = SinglePass(t); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(found[t], expected[t]) << t;
}

}  // namespace
}  // namespace numsim::capi_test
