// Definition of the experiment `swiglu-alignment`: description, options, presets.
#include "experiments/swiglu_alignment/swiglu_alignment.h"

#include <fmt/format.h>

#include <utility>

#include "experiments/shared/paper_training.h"
#include "experiments/shared/training.h"

namespace numsim::experiments {
namespace swiglu_alignment {
namespace {

constexpr std::string_view kDescription =
    "Do the two weight vectors of a SwiGLU channel align during training, as the paper says, and does\n"
    "that bring outliers? w1 is the weight of the linear branch, w2 that of the gate.\n"
    "Exact part, in float64 within seconds, part of every preset:\n"
    "  stationary.csv  stationary points of a single neuron with l2 regularisation. The paper's Theorem 1\n"
    "                  says that w1 and w2 are equal or opposite if the gate is saturated. Inputs (z, b) with\n"
    "                  a constant b and the linear teacher y = b (v.z) refute it: w1 = (v, 0) and w2 = (0, 1),\n"
    "                  scaled, are stationary and orthogonal. From A^2 w = w follows only w1 = p + q and\n"
    "                  w2 = p - q with A p = p and A q = -q.\n"
    "  starts.csv      neurons that Adam trains from random starts: a teacher that is a square aligns w1 and\n"
    "                  w2, also without regularisation; a linear one does not\n"
    "  growth.csv      activation functions at large inputs\n"
    "Trainings of small Llamas depart from a centre (--size, --lr, --weight-decay, --steps) in one respect\n"
    "(--lrs, --weight-decays, --lengths). At the start, after a fortieth of the steps (\"early\": 8 of the\n"
    "paper's 330 billion tokens) and at --points equal distances, every channel of every MLP is measured over\n"
    "one validation batch. The outlier channel is the one with the largest activation at the end; the same\n"
    "channel is followed from the start. This choice favours channels that grew: compare it with the median of\n"
    "all channels, and with leading_cos, the cosine of the channel that leads at each step.\n"
    "Kurtosis (after [FOG]): d sum h^4 / (sum h^2)^2 over the d channels of a token, mean over tokens.\n"
    "Colinearity (after [TWEO]): the largest |cos| of the first left singular vector of the linear branch's\n"
    "weight and a row of the MLP's last weight, both with an element per channel.\n"
    "The paper's alignment begins after 125 billion tokens. Verdicts are about the size and length of a run.\n"
    "docs/swiglu-alignment.md has the derivations.";

std::vector<Option> ArmOptions() {
  return {
      // clang-format off
      {.name = "size",          .quick = "2x32",    .paper = "32x4096", .help = "LAYERSxWIDTH of the model", .small = "2x64"},
      {.name = "lr",            .quick = "4e-3",    .paper = "3e-4",    .help = "peak learning rate of the centre"},
      {.name = "weight-decay",  .quick = "0.1",     .paper = "0.1",     .help = "weight decay of matrices of the centre"},
      {.name = "steps",         .quick = "600",     .paper = "500000",  .help = "training steps of the centre", .small = "1600"},
      {.name = "lrs",           .quick = "",        .paper = "",        .help = "other peak learning rates, separated by commas; empty: none", .small = "1e-3,1.6e-2"},
      {.name = "weight-decays", .quick = "0,1",     .paper = "0",       .help = "other weight decays, separated by commas; empty: none", .small = "0,0.01,1"},
      {.name = "lengths",       .quick = "",        .paper = "",        .help = "other numbers of steps, separated by commas; empty: none", .small = "400"},
      {.name = "points",        .quick = "8",       .paper = "64",      .help = "number of records after the start, at equal distances", .small = "16", .at_most = "steps"},
      {.name = "starts",        .quick = "10",      .paper = "10",      .help = "random starts of the single neuron"},
      {.name = "neuron-steps",  .quick = "20000",   .paper = "20000",   .help = "steps of Adam from each start"},
      // clang-format on
  };
}

std::vector<Option> TrainingOptions() {
  return {
      // clang-format off
      {.name = "products",      .quick = "fp32",    .paper = "tensor-wise:e4m3fn/e5m2", .help = "arithmetic of the linear layers: fp32, or KIND[:FORMAT[/GRADIENT_FORMAT]] as in linear-error"},
      {.name = "text",          .quick = "",        .paper = "",        .help = "UTF-8 file to train on; its last tenth is for validation; empty: generated text"},
      {.name = "text-size",     .quick = "1048576", .paper = "67108864", .help = "bytes of generated text", .small = "4194304"},
      {.name = "context",       .quick = "64",      .paper = "4096",    .help = "bytes per sequence"},
      {.name = "batch",         .quick = "16",      .paper = "1024",    .help = "sequences per step"},
      {.name = "warmup",        .quick = "60",      .paper = "2000",    .help = "steps of linear warm-up of the centre; other lengths have as many in proportion", .small = "160", .part_of = "steps"},
      {.name = "final-lr",      .quick = "0.1",     .paper = "0.1",     .help = "learning rate at the end, over the peak: 0 to 1"},
      {.name = "beta2",         .quick = "0.95",    .paper = "0.95",    .help = "decay of AdamW's second moment"},
      {.name = "epsilon",       .quick = "1e-5",    .paper = "1e-5",    .help = "epsilon of AdamW"},
      {.name = "clip",          .quick = "1",       .paper = "1",       .help = "largest norm of gradients; 0 disables clipping"},
      {.name = "valid-batches", .quick = "8",       .paper = "64",      .help = "validation batches of the final loss"},
      // clang-format on
  };
}

std::string Scale(const Settings& settings, const Tables&) {
  return fmt::format("layers x width {}, {} steps of {} x {} tokens",
                     settings.Get("size"),
                     settings.Get("steps"),
                     settings.Get("batch"),
                     settings.Get("context"));
}

}  // namespace

std::vector<Option> Options() {
  std::vector<Option> options = ArmOptions();
  for (Option& option : TrainingOptions()) options.push_back(std::move(option));
  options.push_back(KeysOption());
  return options;
}

std::vector<PaperSetting> PaperSettings() {
  const std::vector<PaperSetting> others = {
      {"lr",
       "3e-4",
       "Section 6.1: as Llama 2",
       "Smaller models take larger rates; --lrs has others."},
      {"", "Tokens of 32,000 kinds", "Llama 2", "Bytes here, or those of the file of --text."},
      {"",
       "The paper does not say how it found its outlier channel",
       "Figure 2",
       "Here it is the channel with the largest activation at the end, which favours channels that "
       "grew."},
      {"products",
       "tensor-wise:e4m3fn/e5m2",
       "Section 6.2, with delayed scaling",
       "Alignment concerns the weights; fp32 shows it without rounding errors."},
      {"",
       "l2 regularisation in the loss (Equation 1)",
       "Section 4.2",
       "The trainings, as those of the paper's Llama 2, use AdamW's decoupled weight decay."},
  };
  return PaperTraining(Paper::kFishman, Options(), others);
}

}  // namespace swiglu_alignment

Experiment SwigluAlignment() {
  using namespace swiglu_alignment;
  Experiment experiment;
  experiment.name = "swiglu-alignment";
  experiment.title = "alignment and outliers of SwiGLU channels";
  experiment.reproduces = "Sections 4.1 to 4.3, Theorem 1, Figures 2, 7 and 9 of [Fishman]";
  experiment.description = kDescription;
  experiment.options = Options();
  experiment.presets = {{"quick", 10, 90}, {"small", 10, 900}, {"paper", 1}};
  experiment.tables = TableSpecs();
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.claims = Claims();
  experiment.paper_settings = PaperSettings();
  experiment.scale = Scale;
  experiment.notes = Notes;
  return experiment;
}

}  // namespace numsim::experiments
