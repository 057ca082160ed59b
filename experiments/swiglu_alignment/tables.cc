// The tables of `swiglu-alignment`.
#include "experiments/swiglu_alignment/swiglu_alignment.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

TableSpec StationarySpec() {
  return {
      .name = std::string(kStationaryTable),
      .columns = {{"teacher", "linear, square, or angle"},
                  {"degrees", "angle between the teacher's factors p and q of y = (p.x) (q.x)"},
                  {"design", "inputs: corners of a cube (symmetric), or normal"},
                  {"gate", "saturated: sigma is 1; sigmoid"},
                  {"bias", "constant feature of the inputs"},
                  {"mu", "strength of the l2 regularisation"},
                  {"gradient", "norm of the gradient of the regularised loss"},
                  {"least_curvature", "least eigenvalue of its Hessian; above 0 at a minimum"},
                  {"slope", "largest sigma'(w2.x) of all samples"},
                  {"cos", "cosine of the angle between w1 and w2"},
                  {"w1", "norm of w1"},
                  {"w2", "norm of w2"},
                  {"imbalance", "|w1|^2 - |w2|^2"},
                  {"imbalance_error", "its distance from what sigma' explains"},
                  {"eigenvalue_plus", "eigenvalue of the proof's matrix A nearest to 1"},
                  {"eigenvalue_minus", "eigenvalue of A nearest to -1"},
                  {"p", "norm of p = (w1 + w2) / 2"},
                  {"q", "norm of q = (w1 - w2) / 2"},
                  {"split_error",
                   "largest error of A p = p and A q = -q, over the largest element of w1 and w2"},
                  {"square_error", "error of A^2 w1 = w1, over the same"},
                  {"vector_error",
                   "error of A w1 = w1 or, if it is smaller, of A w1 = -w1, over the same"}}};
}

TableSpec StartsSpec() {
  return {.name = std::string(kStartsTable),
          .columns = {{"teacher", "linear, or square"},
                      {"mu", "strength of the l2 regularisation"},
                      {"start", "seed of the start and of the inputs"},
                      {"steps", "steps of Adam"},
                      {"cos_start", "cosine of the angle between w1 and w2 at the start"},
                      {"cos", "that at the end"},
                      {"w1", "norm of w1 at the end"},
                      {"w2", "norm of w2 at the end"},
                      {"slope", "largest sigma'(w2.x) of all samples at the end"},
                      {"loss", "regularised loss at the end"},
                      {"gradient", "norm of its gradient"}}};
}

TableSpec GrowthSpec() {
  return {.name = std::string(kGrowthTable),
          .columns = {{"activation", "relu, gelu, swish; swiglu: of u x with w1 = w2, w1.x = 1"},
                      {"u", "input"},
                      {"over_u", "output over u"},
                      {"over_square", "output over u^2"}}};
}

std::vector<Column> RunColumns() {
  return {
      {"parameters", "parameters of the model"},
      {"status", "finished or diverged"},
      {"taken", "steps taken"},
      {"start_loss", "validation loss before training, nats per token"},
      {"valid_loss", "validation loss at the end; inf when diverged"},
      {"block", "block of the outlier channel"},
      {"channel", "outlier channel: that with the largest activation at the end"},
      {"early_step", "steps before the early record"},
      {"cos_early", "cosine of w1 and w2 of the outlier channel at the early record"},
      {"cos_late", "that at the end"},
      {"others_early", "mean |cosine| of all other channels at the early record"},
      {"others_late", "that at the end"},
      {"w1_early", "norm of w1 of the outlier channel at the early record"},
      {"w1_late", "that at the end"},
      {"w2_early", "norm of w2 (the gate) of the outlier channel at the early record"},
      {"w2_late", "that at the end"},
      {"above_one", "share of the tokens with |w2.x| > 1 in the outlier channel at the end"},
      {"above_e", "share of the tokens with |w2.x| > e"},
      {"slope", "mean sigma'(w2.x) of the outlier channel at the end"},
      {"largest_early", "largest activation of all MLPs at the early record"},
      {"largest_late", "that at the end"},
      {"kurtosis_early",
       "kurtosis of the activations over the channels of the outlier's block, mean over tokens, at the "
       "early record"},
      {"kurtosis_late", "that at the end"},
      {"colinearity_early",
       "largest |cosine| of the first left singular vector of the linear branch's weight and a row of the "
       "last weight, outlier's block, at the early record"},
      {"colinearity_late", "that at the end"},
      {"correlation",
       "correlation of |cosine| and the logarithm of the largest activation over the channels of the "
       "outlier's block at the end"}};
}

std::vector<Column> PointColumns() {
  return {{"step", "steps taken"},
          {"tokens", "tokens seen"},
          {"train_loss", "mean training loss of the last 10 steps; nan before the first"},
          {"cos", "cosine of w1 and w2 of the outlier channel"},
          {"abs_cos", "its magnitude"},
          {"abs_cos_05", "5 % quantile of |cosine| over all channels"},
          {"abs_cos_50", "median"},
          {"abs_cos_95", "95 % quantile"},
          {"w1", "norm of w1 of the outlier channel"},
          {"w2", "norm of w2 of the outlier channel"},
          {"ratio", "w2 over w1"},
          {"above_one", "share of the tokens with |w2.x| > 1 in the outlier channel"},
          {"above_e", "share of the tokens with |w2.x| > e"},
          {"slope", "mean sigma'(w2.x) of the outlier channel"},
          {"outlier", "largest activation of the outlier channel"},
          {"kurtosis", "as kurtosis_late of runs.csv"},
          {"colinearity", "as colinearity_late of runs.csv"},
          {"largest", "largest activation of all MLPs"},
          {"leading_block", "block of the channel with the largest activation at this step"},
          {"leading_channel", "that channel"},
          {"leading_cos", "its cosine of w1 and w2"}};
}

std::vector<Column> ChannelColumns() {
  return {{"step", "steps taken: at the early record and at the end"},
          {"block", "block of the outlier channel"},
          {"channel", "channel of that block"},
          {"cos", "cosine of w1 and w2"},
          {"w1", "norm of w1"},
          {"w2", "norm of w2"},
          {"cos_w1_w3", "cosine of w1 and the channel's column of the last weight"},
          {"above_one", "share of the tokens with |w2.x| > 1"},
          {"above_e", "share of the tokens with |w2.x| > e"},
          {"slope", "mean sigma'(w2.x)"},
          {"largest", "largest activation"}};
}

std::vector<Column> ArmMeans() {
  std::vector<Column> columns = {{"seeds", "number of seeds"},
                                 {"diverged", "share of the runs that diverged"}};
  const Column means[] = {{"valid_loss", "mean over the seeds that finished"},
                          {"abs_cos_early", "|cosine| of the outlier channel at the early record"},
                          {"abs_cos_late", "|cosine| of the outlier channel at the end"},
                          {"others_late", "mean |cosine| of all other channels at the end"},
                          {"w2_growth", "norm of w2 at the end over that at the early record"},
                          {"above_one", "as in runs.csv"},
                          {"largest_late", "as in runs.csv"},
                          {"kurtosis_late", "as in runs.csv"}};
  for (const Column& mean : means) {
    columns.push_back(mean);
    columns.push_back({mean.name + "_low", "95 % interval (Student's t); nan for one seed"});
    columns.push_back({mean.name + "_high", "95 % interval"});
  }
  return columns;
}

}  // namespace

std::vector<TableSpec> TableSpecs() {
  const std::vector<Column> run = Joined(ArmColumns(), {{"seed", "seed of weights and batches"}});
  return {
      StationarySpec(),
      StartsSpec(),
      GrowthSpec(),
      {.name = std::string(kRunsTable), .columns = Joined(run, RunColumns())},
      {.name = std::string(kPointsTable), .columns = Joined(run, PointColumns())},
      {.name = std::string(kChannelsTable), .columns = Joined(run, ChannelColumns())},
      {.name = std::string(kElementsTable),
       .columns = Joined(run,
                         {{"step", "steps taken: at the early record and at the end; first seed"},
                          {"element", "input of the outlier channel"},
                          {"w1", "its weight in the linear branch"},
                          {"w2", "its weight in the gate"}})},
      {.name = std::string(kGatesTable),
       .columns = Joined(run,
                         {{"log_gate", "lower end of a bin of ln |w2.x|, width 0.25; at the end"},
                          {"share", "share of the tokens of the outlier channel in that bin"}})},
      {.name = std::string(kArmsTable),
       .derived = true,
       .columns = Joined(ArmColumns(), ArmMeans())},
  };
}

}  // namespace numsim::experiments::swiglu_alignment
