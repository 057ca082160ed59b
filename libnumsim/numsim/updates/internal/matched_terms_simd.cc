#include <algorithm>

#include "numsim/updates/internal/matched_terms.h"
#include "numsim/updates/step_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/updates/internal/matched_terms_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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
  size_t found = 0, i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto same = hn::Eq(hn::LoadU(df, a + i), hn::LoadU(df, b + i));
    if (hn::AllTrue(df, same)) continue;
    const auto place = hn::Iota(du, static_cast<uint32_t>(i));
    const auto differs = hn::RebindMask(du, hn::Not(same));
    found += hn::CompressBlendedStore(place, differs, du, places + found);
  }
  for (; i < n; ++i) {
    if (!(a[i] == b[i])) places[found++] = static_cast<uint32_t>(i);
  }
  return found;
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(SumTermsOf);
HWY_EXPORT(PlacesThatDiffer);

double SumTerms(const MatchedTerms& terms,
                std::span<const float> weights,
                std::span<const float> update,
                std::span<const float> values) {
  const float *const w = weights.data(), *const u = update.data(), *const v = values.data();
  return SumOverBlocks<double>(weights.size(), [&](size_t begin, size_t count) {
    return HWY_DYNAMIC_DISPATCH(SumTermsOf)(terms, w + begin, u + begin, v + begin, count);
  });
}

size_t FindDifferent(std::span<const float> a,
                     std::span<const float> b,
                     std::span<uint32_t> places) {
  return HWY_DYNAMIC_DISPATCH(PlacesThatDiffer)(a.data(), b.data(), a.size(), places.data());
}

}  // namespace numsim
#endif  // HWY_ONCE
