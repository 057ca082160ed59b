// The items of [Fishman].
#include "experiments/core/catalogue.h"

namespace numsim::experiments {
namespace {

constexpr std::string_view kSwiGlu =
    "not built: the study of outliers in SwiGLU, delayed scaling and Smooth-SwiGLU.";
constexpr std::string_view kTimes = "not built: end-to-end times of FP8 training.";

}  // namespace

std::span<const PaperItem> FishmanItems() {
  static constexpr PaperItem kItems[] = {
      {"fishman/figure-1",
       "[Fishman] Figure 1",
       "Maxima of activations are stable at the beginning; after 200 billion tokens sporadic"
       " outliers appear.",
       ""},
      {"fishman/section-4.1",
       "[Fishman] Section 4.1",
       "SwiGLU is quadratic at large inputs if w_1 and w_2 are aligned; ReLU, GELU and Swish are "
       "at most linear.",
       ""},
      {"fishman/section-4.2",
       "[Fishman] Section 4.2",
       "w_1 and w_2 tend to align because of l2 regularisation, even if it is very weak.",
       ""},
      {"fishman/equation-1",
       "[Fishman] Equation 1",
       "The regularised loss of a network with a SwiGLU neuron.",
       ""},
      {"fishman/theorem-1",
       "[Fishman] Theorem 1",
       "At a stationary point where sigma' vanishes for all samples, w_1 and w_2 of a SwiGLU"
       " neuron are equal, or opposite.",
       ""},
      {"fishman/equation-2",
       "[Fishman] Equation 2",
       "At that point w_1 = A^2 w_1 and w_2 = A^2 w_2.",
       ""},
      {"fishman/figure-2",
       "[Fishman] Figure 2",
       "LlaMA2 7B in FP8 diverges after 200 billion tokens, as w_1 and w_2 of a channel grow"
       " and align.",
       ""},
      {"fishman/figure-3",
       "[Fishman] Figure 3",
       "FP8 training converges if the output of SwiGLU is not quantised.",
       ""},
      {"fishman/figure-4",
       "[Fishman] Figure 4",
       "An MLP with quantised SwiGLU and with Smooth-SwiGLU.",
       ""},
      {"fishman/equation-3",
       "[Fishman] Equation 3",
       "Smooth-SwiGLU scales each channel before quantisation and back after it.",
       ""},
      {"fishman/section-5.2",
       "[Fishman] Section 5.2",
       "m converges in E4M3; v needs the range of E5M2.",
       ""},
      {"fishman/figure-5",
       "[Fishman] Figure 5",
       "Of the FP8 pairs, only m in E4M3 with v in E5M2 converges to the baseline, in a "
       "Llama2 with 100 million parameters.",
       ""},
      {"fishman/table-1",
       "[Fishman] Table 1",
       "Formats of the moments: E4M3 and E5M2 here, E4M3 and fp16 before.",
       "no claim: a comparison of settings; moment-formats runs such pairs."},
      {"fishman/figure-6",
       "[Fishman] Figure 6",
       "Llama2 7B with Smooth-SwiGLU and FP8 moments converges as bf16 does, where standard "
       "FP8 diverges after 200 billion tokens.",
       ""},
      {"fishman/table-2",
       "[Fishman] Table 2",
       "Zero-shot accuracy and perplexity of FP8 are on par with bf16.",
       "out of reach: Llama2 7B and its downstream tasks."},
      {"fishman/table-3",
       "[Fishman] Table 3",
       "Throughput of FP8 configurations on eight Gaudi2; full FP8 is about 37 % faster.",
       kTimes},
      {"fishman/table-4",
       "[Fishman] Table 4",
       "FP8 moments and fp16 master weights take about 30 % less memory.",
       ""},
      {"fishman/appendix-a", "[Fishman] Appendix A", "More data.", "no claim: a heading."},
      {"fishman/appendix-a.1",
       "[Fishman] Appendix A.1",
       "More data about the instability.",
       kSwiGlu},
      {"fishman/figure-7",
       "[Fishman] Figure 7",
       "In an outlier channel, w_1 and w_2 are hardly correlated early (8 billion tokens) "
       "and highly negatively correlated late (330 billion).",
       ""},
      {"fishman/figure-8",
       "[Fishman] Figure 8",
       "More about outlier channels (the text that we have holds no caption).",
       "no claim: without its caption nothing says what it shows."},
      {"fishman/figure-9",
       "[Fishman] Figure 9",
       "Histogram of |w_2^T x_n| over the tokens of a batch in an outlier channel after 200 "
       "billion tokens.",
       ""},
      {"fishman/appendix-a.2", "[Fishman] Appendix A.2", "Throughput on Nvidia GPUs.", kTimes},
      {"fishman/table-5",
       "[Fishman] Table 5",
       "Throughput of FP8 configurations on eight A6000 Ada.",
       kTimes},
      {"fishman/appendix-a.3",
       "[Fishman] Appendix A.3",
       "A study of Smooth-SwiGLU with bf16.",
       "no claim: Figures 10 and 11 have its claims."},
      {"fishman/figure-10",
       "[Fishman] Figure 10",
       "Smooth-SwiGLU makes bf16 training of a Llama with 700 million parameters smoother.",
       ""},
      {"fishman/figure-11",
       "[Fishman] Figure 11",
       "Figure 10 enlarged: Smooth-SwiGLU reaches a lower loss.",
       ""},
      {"fishman/appendix-a.4",
       "[Fishman] Appendix A.4",
       "FP8 without SwiGLU.",
       "no claim: Figure 12 has its claim."},
      {"fishman/figure-12",
       "[Fishman] Figure 12",
       "FP8 training of a GPT-3 with 125 million parameters and without SwiGLU converges.",
       ""},
  };
  return kItems;
}

}  // namespace numsim::experiments
