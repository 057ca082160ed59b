// The items of [Seed003].
#include "experiments/claims/catalogue.h"

namespace numsim::experiments {
namespace {

constexpr std::string_view kPlot =
    "no claim: the plot of section Precision, whose claims are tested; update-fidelity draws it.";

}  // namespace

std::span<const PaperItem> Seed003Items() {
  static constexpr PaperItem kItems[] = {
      {"seed003/quantization-barrier",
       "[Seed003] The Quantization Barrier",
       "In E4M3, 0.75 + 0.03 rounds to 0.75: the update vanishes.",
       ""},
      {"seed003/collective-precision",
       "[Seed003] Collective Precision",
       "The magnitude of a tensor has a higher precision than its elements, so an update can"
       " keep the one where it loses the other.",
       ""},
      {"seed003/algorithm",
       "[Seed003] Algorithm",
       "A binary search for the factor with which the rounded update has the requested norm.",
       ""},
      {"seed003/precision",
       "[Seed003] Precision",
       "The search works for rates much smaller than any other method does, without more "
       "error per parameter.",
       ""},
      {"seed003/figure-fp8",
       "[Seed003] Figure low_prec_fp8",
       "Errors of magnitude and parameters against the rate in fp8.",
       kPlot},
      {"seed003/figure-fp16",
       "[Seed003] Figure low_prec_fp16",
       "Errors of magnitude and parameters against the rate in fp16.",
       kPlot},
      {"seed003/figure-bf16",
       "[Seed003] Figure low_prec_bf16",
       "Errors of magnitude and parameters against the rate in bf16.",
       kPlot},
      {"seed003/pretraining",
       "[Seed003] Pretraining",
       "A 200M bf16 model on 60M tokens at 1e-7 takes much longer to converge than with fp32"
       " master weights, and weights move more slowly.",
       ""},
      {"seed003/figure-debug",
       "[Seed003] Figure low_prec_debug",
       "Loss and movement of the weights in that pretraining.",
       ""},
      {"seed003/conclusion",
       "[Seed003] Conclusion",
       "The low-precision version falls further and further behind and fails to update the "
       "parameters meaningfully; master weights are fine.",
       ""},
  };
  return kItems;
}

}  // namespace numsim::experiments
