// The tables of `loss-spikes`.
#include "experiments/loss_spikes/loss_spikes.h"

namespace numsim::experiments::loss_spikes {

std::vector<TableSpec> TableSpecs() {
  const Column seed{"seed", "seed of weights and batches"};
  const std::vector<Column> run = Joined(ArmColumns(), {seed});
  return {
      {.name = std::string(kRunsTable),
       .columns = Joined(
           run,
           {{"parameters", "parameters of the model"},
            {"status", "finished or diverged"},
            {"steps", "steps taken"},
            {"start_loss", "validation loss before training, nats (llama: per byte)"},
            {"chance_loss", "loss of a guess by the frequencies of the answers"},
            {"train_loss", "mean training loss of the last 10 steps"},
            {"valid_loss", "validation loss at the end; inf when diverged"},
            {"accuracy",
             "clip: zero-shot accuracy on held-out captions; others: accuracy of the validation; 0 to 1"},
            {"collapsed", "1 if valid_loss is above 95 % of chance_loss"},
            {"loss_spikes", "number of loss spikes after the warm-up"},
            {"steps_lost", "steps until the loss was back, over all loss spikes"},
            {"rms_spikes", "number of RMS spikes of the embedding that reads the input"},
            {"max_rms", "largest RMS_t of that embedding after the warm-up"},
            {"bound_ratio",
             "largest RMS_t of any tensor over 1 / sqrt(1 - beta2); 0: the bound is for a constant beta2 "
             "and RMS_t of this step's g and u"},
            {"change_rms", "RMS_t of that embedding at --change-step"},
            {"change_max_rms", "its largest RMS_t in the 50 steps from then on"},
            {"change_update",
             "largest root mean square of its direction in these 50 steps, over the mean of the 50 "
             "before"}})},
      {.name = std::string(kEventsTable),
       .columns = Joined(run,
                         {{"event", "loss, rms or curvature"},
                          {"tensor", "of RMS spikes: the parameter"},
                          {"count", "number of events"},
                          {"at", "steps at which they begin, separated by blanks"},
                          {"lost", "of loss spikes: steps until the loss was back"}})},
      {.name = std::string(kTraceTable),
       .columns =
           Joined(run,
                  {{"step",
                    "steps taken before this one; first seed, AdamW and StableAdamW at the centre"},
                   {"loss", "loss of the batch"},
                   {"deviation", "standard deviations above the running mean; nan: too few losses"},
                   {"rms", "RMS_t of the embedding that reads the input"}})},
      {.name = std::string(kArmsTable),
       .derived = true,
       .columns =
           Joined(ArmColumns(),
                  {{"seeds", "number of seeds"},
                   {"collapsed", "share of runs that collapsed"},
                   {"valid_loss", "mean over seeds of the runs that finished"},
                   {"valid_loss_low", "95 % interval of the mean (Student's t); nan for one seed"},
                   {"valid_loss_high", "95 % interval"},
                   {"accuracy", "mean over seeds"},
                   {"accuracy_low", "95 % interval"},
                   {"accuracy_high", "95 % interval"},
                   {"loss_spikes", "mean number per run"},
                   {"loss_spikes_low", "95 % interval"},
                   {"loss_spikes_high", "95 % interval"},
                   {"steps_lost", "mean number per run"},
                   {"rms_spikes", "mean number per run"},
                   {"max_rms", "mean over seeds"},
                   {"max_rms_low", "95 % interval"},
                   {"max_rms_high", "95 % interval"}})},
      {.name = std::string(kPredictionTable),
       .derived = true,
       .columns =
           {{"scope",
             "AdamW runs: steady, without a change of the data; new, from --window steps after new data on; student"},
            {"predictor", "parameter whose RMS spikes are the events; any; curvature"},
            {"runs", "number of runs that have it"},
            {"events", "number of events"},
            {"spikes", "number of loss spikes"},
            {"predicted", "loss spikes that follow an event by 1 to 8 steps"},
            {"recall", "predicted over spikes"},
            {"precision", "share of the events that a loss spike follows by 1 to 8 steps"},
            {"expected", "mean of predicted if the events of each run are shifted"},
            {"p", "probability of at least `predicted` under these shifts"},
            {"p_holm", "p corrected by Holm for the predictors of the scope"},
            {"lead", "mean steps from the first such event to its spike"}}},
  };
}

}  // namespace numsim::experiments::loss_spikes
