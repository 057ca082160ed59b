#include <algorithm>
#include <bit>

#include "numsim/updates/internal/matched_terms.h"
#include "numsim/updates/step_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/updates/internal/matched_terms_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE bool SameBits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

// Returns the sum of MatchedTerms::operator() in lanes of float64. Sums are exact as long as they
// matter, so each lane may have its own.
template <bool kNorm>
double SumOf(const MatchedTerms& terms, const float* w, const float* u, const float* v, size_t n) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;
  const size_t lanes = hn::Lanes(dd);
  const auto scale = hn::Set(dd, terms.inverse_quantum);
  const auto load = [&](const float* x) HWY_ATTR { return hn::PromoteTo(dd, hn::LoadU(df, x)); };
  const auto term = [&](size_t i) HWY_ATTR {
    const auto d = hn::Sub(load(v + i), load(w + i));
    auto other = d;
    if constexpr (!kNorm) other = load(u + i);
    return hn::Round(hn::Mul(hn::Mul(d, other), scale));
  };
  auto sum0 = hn::Zero(dd), sum1 = sum0;
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    sum0 = hn::Add(sum0, term(i));
    sum1 = hn::Add(sum1, term(i + lanes));
  }
  HWY_ALIGN double sums[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(hn::Add(sum0, sum1), dd, sums);
  double total = 0;
  for (size_t lane = 0; lane < lanes; ++lane) total += sums[lane];
  for (; i < n; ++i) total += terms(w[i], u[i], v[i]);
  return total;
}

double SumTermsOf(
    const MatchedTerms& terms, const float* w, const float* u, const float* v, size_t n) {
  if (terms.quantity == MatchedQuantity::kNorm) {
    return SumOf<true>(terms, w, u, v, n);
  }
  return SumOf<false>(terms, w, u, v, n);
}

size_t PlacesThatDiffer(const float* a, const float* b, size_t n, uint32_t* places) {
  const hn::ScalableTag<float> df;
  const hn::RebindToUnsigned<decltype(df)> du;
  const size_t lanes = hn::Lanes(df);
  const auto bits = [&](const float* x) HWY_ATTR { return hn::BitCast(du, hn::LoadU(df, x)); };
  size_t found = 0, i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto same = hn::Eq(bits(a + i), bits(b + i));
    if (hn::AllTrue(du, same)) continue;
    const auto place = hn::Iota(du, static_cast<uint32_t>(i));
    found += hn::CompressBlendedStore(place, hn::Not(same), du, places + found);
  }
  for (; i < n; ++i) {
    if (!SameBits(a[i], b[i])) places[found++] = static_cast<uint32_t>(i);
  }
  return found;
}

size_t CopyThatDiffer(const BracketValues& from, uint64_t first, const BracketValuesOut& to) {
  const hn::ScalableTag<float> df;
  const hn::RebindToUnsigned<decltype(df)> du;
  const size_t lanes = hn::Lanes(df);
  HWY_ALIGN uint32_t places[HWY_MAX_BYTES / sizeof(uint32_t)];
  size_t found = 0, i = 0;
  for (; i + lanes <= from.count; i += lanes) {
    const auto low = hn::LoadU(df, from.at_low + i), high = hn::LoadU(df, from.at_high + i);
    const auto same = hn::Eq(hn::BitCast(du, low), hn::BitCast(du, high));
    if (hn::AllTrue(du, same)) continue;
    const auto differs = hn::RebindMask(df, hn::Not(same));
    // There is room for a whole vector, because found <= i.
    const auto copy = [&](auto values, float* all)
                          HWY_ATTR { hn::StoreU(hn::Compress(values, differs), df, all + found); };
    copy(hn::LoadU(df, from.weights + i), to.weights);
    copy(hn::LoadU(df, from.update + i), to.update);
    copy(low, to.at_low);
    copy(high, to.at_high);
    const auto place = hn::Iota(du, static_cast<uint32_t>(i));
    hn::Store(hn::Compress(place, hn::Not(same)), du, places);
    const size_t more = hn::CountTrue(df, differs);
    for (size_t k = 0; k < more; ++k) to.index[found + k] = first + places[k];
    found += more;
  }
  for (; i < from.count; ++i) {
    if (SameBits(from.at_low[i], from.at_high[i])) continue;
    to.weights[found] = from.weights[i];
    to.update[found] = from.update[i];
    to.at_low[found] = from.at_low[i];
    to.at_high[found] = from.at_high[i];
    to.index[found++] = first + i;
  }
  return found;
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(SumTermsOf);
HWY_EXPORT(PlacesThatDiffer);
HWY_EXPORT(CopyThatDiffer);

double SumTerms(const MatchedTerms& terms,
                std::span<const float> weights,
                std::span<const float> update,
                std::span<const float> values) {
  const float *const w = weights.data(), *const u = update.data(), *const v = values.data();
  return SumOverBlocks<double>(weights.size(), [&](size_t begin, size_t count) {
    return HWY_DYNAMIC_DISPATCH(SumTermsOf)(terms, w + begin, u + begin, v + begin, count);
  });
}

size_t CopyDifferent(const BracketValues& from, uint64_t first, const BracketValuesOut& to) {
  return HWY_DYNAMIC_DISPATCH(CopyThatDiffer)(from, first, to);
}

size_t FindDifferent(std::span<const float> a,
                     std::span<const float> b,
                     std::span<uint32_t> places) {
  return HWY_DYNAMIC_DISPATCH(PlacesThatDiffer)(a.data(), b.data(), a.size(), places.data());
}

}  // namespace numsim
#endif  // HWY_ONCE
