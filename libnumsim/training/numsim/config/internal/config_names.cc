#include "numsim/config/internal/config_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "numsim/base/nearest_name.h"
#include "numsim/config/shared/config_table.h"

namespace numsim {
namespace {

constexpr OtherNames kOtherNames[] = {
    {"model.layers",
     "depth n_layer n_layers num_layer num_layers nlayers num_hidden_layers blocks n_blocks "
     "num_blocks"},
    {"model.width",
     "dim d_model dmodel model_dim hidden_size hidden_dim n_embd embed_dim embedding_dim emb_dim"},
    {"model.heads", "n_head n_heads num_heads nheads num_attention_heads"},
    {"model.hidden", "d_ff ff_dim ffn_dim mlp_dim ffn_hidden_size intermediate_size"},
    {"model.context",
     "seq_len seqlen seq_length sequence_length max_seq_len max_seq_length block_size ctx n_ctx "
     "ctx_len context_length context_size max_position_embeddings"},
    {"model.patch", "patch_size"},
    {"model.kind", "arch architecture model_type model_name model.type model.name"},
    {"model.norm_epsilon", "norm_eps rms_norm_eps layer_norm_eps layer_norm_epsilon model.eps"},
    {"model.rope_base", "rope_theta"},
    {"model.initial_deviation", "init_std initializer_range"},
    {"linear.block", "linear.block_size"},
    {"linear.format", "linear.dtype"},
    {"linear.kind", "linear.type linear.name"},
    {"optimizer.kind",
     "optim optimiser optimizer_name optimizer_type optimizer.type optimizer.name"},
    {"optimizer.beta1 and optimizer.beta2", "betas beta"},
    {"optimizer.beta1", "momentum beta_1 b1 adam_beta1"},
    {"optimizer.beta2", "beta_2 b2 adam_beta2"},
    {"optimizer.epsilon", "eps adam_eps adam_epsilon"},
    {"optimizer.weight_decay", "wd decay l2"},
    {"optimizer.clip_norm",
     "clip clip_grad grad_clip grad_clip_norm clip_grad_norm gradient_clip gradient_clipping "
     "gradient_clip_val max_grad_norm max_norm"},
    {"optimizer.m", "m_format m_dtype exp_avg first_moment"},
    {"optimizer.v", "v_format v_dtype exp_avg_sq second_moment"},
    {"optimizer.m and optimizer.v", "moments moment_format moments_format"},
    {"optimizer.weights", "weight_format weights_format weight_dtype param_dtype"},
    {"schedule.peak", "lr learning_rate learningrate max_lr peak_lr base_lr init_lr lr_max"},
    {"schedule.final", "min_lr lr_min final_lr end_lr"},
    {"schedule.warmup", "warmup_steps warmup_iters num_warmup_steps warm_up"},
    {"schedule.kind",
     "scheduler lr_scheduler lr_schedule lr_scheduler_type lr_decay schedule.type schedule.name"},
    {"loss_scaler.initial", "loss_scale init_scale initial_scale"},
    {"loss_scaler.kind", "loss_scaler.type loss_scaler.name grad_scaler"},
    {"data.kind", "data.type data.name data.source"},
    {"data.path", "dataset dataset_path data_path data_dir train_data train_file"},
    {"data.valid_path", "valid_data val_data valid_file validation_file"},
    {"data.valid_share", "valid_fraction val_fraction val_split valid_split validation_split"},
    {"data.classes", "n_classes num_classes"},
    {"data.image", "image_size img_size"},
    {"train.seed", "seed random_seed"},
    {"train.steps",
     "max_steps num_steps n_steps total_steps training_steps num_train_steps iters n_iters "
     "max_iters iterations num_iterations max_iterations epoch epochs n_epochs num_epochs "
     "max_epochs num_train_epochs"},
    {"train.batch",
     "batch_size bs train_batch_size micro_batch_size global_batch_size "
     "per_device_train_batch_size"},
    {"recipe", "linear.recipe linear.recipes model.recipe train.recipe recipes"},
    {"train.valid_every",
     "eval_every val_every eval_interval val_interval valid_interval eval_steps val_steps "
     "eval_freq"},
    {"train.valid_batches", "eval_batches val_batches eval_iters val_iters"},
    {"telemetry.every",
     "log_every log_interval log_freq logging_steps telemetry.interval telemetry.steps"},
    {"checkpoint.every",
     "save_every save_interval save_steps ckpt_every ckpt_interval checkpoint_every "
     "checkpoint_interval checkpoint_steps checkpoint.interval checkpoint.steps"},
};

std::string_view LastPart(std::string_view name) { return name.substr(name.rfind('.') + 1); }

std::string WithoutCase(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return result;
}

bool HasWord(std::string_view words, std::string_view word) {
  return fmt::format(" {} ", words).find(fmt::format(" {} ", word)) != std::string::npos;
}

// Returns the key that has this other name; "" if there is none.
std::string ByOtherName(std::string_view name) {
  for (const OtherNames& other : kOtherNames) {
    if (HasWord(other.names, name)) return std::string(other.key);
  }
  return {};
}

// Returns the name of the fewest changes to `wrong`, whose part after the section is `last`; "" if
// none is near.
std::string NearestKey(std::string_view wrong,
                       std::string_view last,
                       const std::vector<std::string>& names) {
  constexpr size_t kLongest = 200;  // what is longer is no typo, and the distances take the product
  if (wrong.size() > kLongest) return {};
  const std::string* nearest = nullptr;
  size_t least = 0;
  for (const std::string& name : names) {
    const size_t in_last = EditDistance(last, LastPart(name));
    const size_t changes = std::min(EditDistance(wrong, name), 2 + in_last);
    if (!IsLikelyTypo(in_last, last.size()) || (nearest != nullptr && changes >= least)) continue;
    nearest = &name;
    least = changes;
  }
  return nearest == nullptr ? std::string() : *nearest;
}

}  // namespace

std::span<const OtherNames> AllOtherNames() { return kOtherNames; }

std::string KeyHint(std::string_view wrong, const std::vector<std::string>& names) {
  const std::string plain = WithoutCase(wrong);
  // The other names are those of keys of the whole model, not of a table for some layers.
  const bool for_layers = plain.starts_with(kOverrideSection);
  for (const std::string_view name : {std::string_view(plain), LastPart(plain)}) {
    std::string key = for_layers ? std::string() : ByOtherName(name);
    if (!key.empty()) return key;
  }
  return NearestKey(plain, LastPart(plain), names);
}

std::string SectionHint(std::string_view wrong, const std::vector<std::string>& sections) {
  constexpr size_t kShortest = 3;  // of a short form
  if (std::string nearest = NearestName(wrong, sections); !nearest.empty()) return nearest;
  for (const std::string& section : sections) {
    const bool is_form = section.starts_with(wrong) || wrong.starts_with(section);
    if (is_form && wrong.size() >= kShortest) return section;
  }
  return {};
}

}  // namespace numsim
