// Noise schedules of N discrete times, as diffusers' schedulers have them, and the same as a clock of this library.
//
// A schedule is betas b_0 .. b_{N-1}; abar_i = (1 - b_0) ... (1 - b_i), and index i stands for the noisy sample
//
//     x_i = sqrt(abar_i) x_0 + sqrt(1 - abar_i) eps.
//
// In the clock of denoising/time_grid.hpp, where X_tau = e^-tau X_0 + sqrt(1 - e^-2tau) eps, that is noise time
//
//     tau_i = -1/2 ln abar_i.
//
// A network trained on such a schedule is given the index as its time. Between indices its time is linear in ln tau,
// and it is clamped to [0, N - 1]. Chains begin at the horizon min(4, tau_{N-1}), where e^-4 = 0.018 of the data is
// left.
//
// Betas and abar are single precision, rounded where diffusers rounds: for a schedule of T training steps (i / T below
// is in double)
//
//     linear              T numbers from beta_start to beta_end
//     scaled_linear       the squares of T numbers from sqrt(beta_start) to sqrt(beta_end)
//     squaredcos_cap_v2   min(1 - f((i+1)/T) / f(i/T), 0.999), f(u) = cos^2((u + 0.008) / 1.008 pi / 2)
//     laplace             the same with f(u) = sqrt(s / (1 + s)), ln s = sign(u - 1/2) / 2 ln(1 - |1 - 2u| + 1e-6)
//     sigmoid             beta_start + (beta_end - beta_start) / (1 + e^-y), y: T numbers from -6 to 6
//
// or `trained_betas`; with rescale_betas_zero_snr, sqrt(abar) is shifted and scaled so that the last one is 0.
#pragma once

#include "implicit_diffusion/denoising/time_grid.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace implicit_diffusion {

// scheduler_config.json: its fields, under their names and with the defaults of DDPMScheduler (models/model_folder.hpp
// reads and writes it).
struct SchedulerConfig {
  enum class BetaSchedule { linear, scaled_linear, squaredcos_cap_v2, sigmoid, laplace };
  enum class Prediction { epsilon, sample, v_prediction };
  enum class Variance { fixed_small, fixed_small_log, fixed_large, fixed_large_log, learned, learned_range };
  enum class Spacing { leading, linspace, trailing };

  std::string class_name = "DDPMScheduler";
  std::int64_t num_train_timesteps = 1000;  // N
  double beta_start = 1e-4;
  double beta_end = 0.02;
  BetaSchedule beta_schedule = BetaSchedule::linear;
  std::vector<double> trained_betas;  // N of them in place of a schedule, or none
  bool rescale_betas_zero_snr = false;
  Prediction prediction_type = Prediction::epsilon;

  // How diffusers samples. Finetuning does none of this.
  Variance variance_type = Variance::fixed_small;
  bool clip_sample = true;
  double clip_sample_range = 1;
  bool thresholding = false;
  double dynamic_thresholding_ratio = 0.995;
  double sample_max_value = 1;
  Spacing timestep_spacing = Spacing::leading;
  std::int64_t steps_offset = 0;
  bool set_alpha_to_one = true;  // DDIMScheduler: beyond the first index abar is 1, else abar_0

  std::map<std::string, std::string> other_keys;  // of the file, each with its JSON text

  bool operator==(const SchedulerConfig&) const = default;
};

// The schedule of models that are trained here: abar_i = cos^2(pi (i + 1) / 2000), i < 988, which ends at tau_987 =
// 3.97, with prediction of v. The network's time 1000 (2 / pi) acos(e^-tau) - 1 is the index.
SchedulerConfig cosine_scheduler_config();

// A step of sampling, from x with the network's output m:
//
//     x_0  = sample x + output m, clamped to [-clip, clip]
//     next = from_x0 x_0 + from_sample x + from_output m + noise z,     z ~ N(0, I)
struct DiscreteStep {
  double sample, output;
  double clip;  // infinite: not at all
  double from_x0, from_sample, from_output;
  double noise;
};

class DiscreteSchedule {
 public:
  // Throws a usage Error that names the field unless N is between 1 and 1,000,000, every beta is in [0, 1), but for the
  // last, which may be 1, and tau increases.
  explicit DiscreteSchedule(const SchedulerConfig& config);

  std::size_t size() const { return betas_.size(); }
  const std::vector<float>& betas() const { return betas_; }
  const std::vector<float>& abar() const { return abar_; }

  double tau(std::size_t i) const { return tau_[i]; }  // infinite where abar_i = 0
  double horizon() const;
  double network_time(double tau) const;

  // `count` indices from noise to data, spread over the schedule as timestep_spacing says. Throws a usage Error unless
  // 1 <= count <= N and they are all below N.
  std::vector<std::int64_t> timesteps(std::size_t count) const;
  // The grid of a chain that goes through these indices, and then to 0.
  TimeGrid grid(const std::vector<std::int64_t>& timesteps) const;

  // From index t to `previous`, -1 for the data itself. DDPMScheduler takes the next of its timesteps. Throws a usage
  // Error where a network's output has a variance too (`learned`), or where x_0 is thresholded, which depends on all of
  // a sample.
  DiscreteStep ddpm_step(std::int64_t t, std::int64_t previous) const;
  // DDIMScheduler takes t - N / count, whatever the spacing. eta scales the noise: 0 has none.
  DiscreteStep ddim_step(std::int64_t t, std::int64_t previous, double eta) const;

  // The noisy sample at index t is `data` x_0 + `noise` eps; the velocity is `data` eps - `noise` x_0.
  struct Amplitudes {
    float data, noise;
  };
  Amplitudes amplitudes(std::int64_t t) const;

 private:
  void require_index(std::int64_t t) const;
  void require_step(std::int64_t t, std::int64_t previous) const;
  double abar_at(std::int64_t t, double beyond) const;
  DiscreteStep denoise(std::int64_t t) const;  // x_0 alone

  SchedulerConfig config_;
  std::vector<float> betas_, abar_;
  std::vector<double> tau_;
};

}  // namespace implicit_diffusion
