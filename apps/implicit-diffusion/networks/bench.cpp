// What `bench` measures with networks: fixed problems, verified, then timed.
//
// The amount of work of a network is that of its convolutions and products of matrices, in floating-point operations
// that are counted while it runs; a product back takes twice as many. Their rate is compared with the best rate of a
// product of matrices in the same turn, on as many threads. On one thread times are processor times; on two they are
// those of the clock. One file, though a long one, as commands/bench.cpp is: all times are taken in the same way.
#include "commands/timing.hpp"
#include "experiment/console.hpp"
#include "experiment/registry.hpp"
#include "images/experiment.hpp"
#include "implicit_diffusion/denoising/gradient.hpp"
#include "implicit_diffusion/images/diffusion.hpp"
#include "implicit_diffusion/images/rewards.hpp"
#include "implicit_diffusion/loop/queue.hpp"
#include "implicit_diffusion/torch/score_matching.hpp"
#include "networks/environment.hpp"
#include "problems/whole_graph.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <string_view>
#include <thread>

namespace program {
namespace {

using namespace implicit_diffusion;
using Chain = ReverseChain<NetworkSteps>;
using Batch = PathBatch<NetworkSteps>;

// Images of 32 x 32, 1.6 million parameters; benchmarks/rivals/unet.py has the same.
UNetConfig bench_unet() {
  using Block = UNetConfig::Block;
  UNetConfig c;
  c.sample_size = {32};
  c.in_channels = c.out_channels = 1;
  c.block_out_channels = {32, 64, 64};
  c.down_block_types = {Block::plain, Block::plain, Block::attention};
  c.up_block_types = {Block::attention, Block::plain, Block::plain};
  c.norm_num_groups = 8;
  return c;
}

// ---- work, counted

std::int64_t operations = 0;  // of the calls on the thread that counts

std::unique_ptr<at::ObserverContext> count_operations(const at::RecordFunction& f) {
  const std::string_view name = f.name();
  const auto in = f.inputs();
  const auto size = [&](std::size_t i, std::int64_t d) { return in[i].toTensor().size(d); };
  if (name == "aten::bmm") operations += 2 * in[0].toTensor().numel() * size(1, 2);
  if (name == "aten::mm") operations += 2 * in[0].toTensor().numel() * size(1, 1);
  if (name == "aten::addmm") operations += 2 * in[1].toTensor().numel() * size(2, 1);
  if (name == "aten::convolution") {  // of x, weight, bias, stride, padding; a single number is for both directions
    const auto along = [&](std::size_t i, std::int64_t d) {
      const auto numbers = in[i].toIntVector();
      return numbers[std::min(static_cast<std::size_t>(d), numbers.size() - 1)];
    };
    std::int64_t places = size(0, 0);
    for (std::int64_t d = 0; d < 2; ++d)
      places *= (size(0, 2 + d) + 2 * along(4, d) - size(1, 2 + d)) / along(3, d) + 1;
    operations += 2 * places * in[1].toTensor().numel();
  }
  return nullptr;
}

// Floating-point operations of a call, on this thread.
template <class Work>
double operations_of(Work&& work) {
  operations = 0;
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(count_operations).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  return static_cast<double>(operations);
}

// ---- one step of a network, in our shards and in one call

double relative(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor c = b.to(at::kDouble);
  return ((a.to(at::kDouble) - c).norm() / c.norm()).item<double>();
}

at::Tensor normals(const std::vector<std::int64_t>& shape, Stream stream) {
  TensorSamples x(static_cast<std::size_t>(shape[0]), {shape.begin() + 1, shape.end()});
  TensorTiles::fill_normals(x, Noise(3), stream, {});
  return x.x();
}

// A step of a chain and its adjoint, of 32 images.
struct NetworkBench {
  static constexpr std::int64_t images = 32;

  Network network = make_unet(bench_unet());
  TensorParameters theta = initial_unet(bench_unet(), Noise(1)), gradient = zeros_like(theta);
  NetworkWeights model;
  ReverseStep step{0, 1.0, step_coefficients(Dynamics::ddim, 1.0, 0.1), {}};
  TensorSamples from{normals({images, 1, 32, 32}, Stream::initial)}, to = from, a = from;
  at::Tensor adjoint = normals({images, 1, 32, 32}, Stream::component);

  NetworkBench() { model.set(network.layout, theta); }

  // Ours: shards over threads.
  void forward(Workers* workers) {
    const NetworkSteps steps(network);
    TensorTiles::for_each(workers, TensorTiles::tiles(from), [&](std::size_t k) {
      steps.forward(model, nullptr, step, TensorTiles::tile(from, k), TensorTiles::tile(to, k), nullptr);
    });
  }
  void backward(Workers* workers) {
    const NetworkSteps steps(network);
    a.x().copy_(adjoint);
    TensorTiles::sum(workers, from, gradient, [&](std::size_t k, TensorParameters& sum) {
      steps.backward(model, nullptr, step, 0, TensorTiles::tile(from, k), TensorTiles::tile(a, k), sum);
    });
  }

  // One call for all images, on so many threads of LibTorch's own.
  at::Tensor time() const { return at::full({images}, step.tau); }
  double factor() const { return -step.c.pull / std::sqrt(-std::expm1(-2 * step.tau)); }
  at::Tensor forward_at_once(int threads) const {
    at::set_num_threads(threads);
    const at::NoGradGuard no_graph;
    return network.forward(model.constants(), {from.x(), time(), {}}) * factor() + from.x() * step.c.growth;
  }
  std::vector<at::Tensor> backward_at_once(int threads) const {
    at::set_num_threads(threads);
    std::vector<at::Tensor> wanted = model.leaves();
    wanted.push_back(from.x().detach().requires_grad_());
    const at::Tensor out = network.forward(model.leaves(), {wanted.back(), time(), {}});
    return ::torch::autograd::grad({out}, wanted, {adjoint * factor()}, c10::nullopt, false, /*allow_unused=*/true);
  }

  // Shards give what one call gives, to the rounding of single precision, and the same bits on two threads.
  std::string verify() {
    Workers pair(2);
    forward(nullptr);
    backward(nullptr);
    const double forward_error = relative(to.x(), forward_at_once(1));
    std::vector<at::Tensor> parts = backward_at_once(1);
    parts.pop_back();
    for (at::Tensor& p : parts) p = p.flatten();
    const double backward_error = relative(gradient.read(), at::cat(parts));
    require_right(forward_error < 1e-4 && backward_error < 1e-4,
                  fmt::format("shards and one call differ by {} and {}", forward_error, backward_error));
    const TensorSamples to_before = to;
    const TensorParameters gradient_before = gradient;
    forward(&pair);
    backward(&pair);
    require_right(to == to_before && gradient == gradient_before, "two threads give other bits than one");
    return fmt::format(
        "  verified: shards of {} against one call, relative difference {:.1e}, of the gradient {:.1e} (allowed 1e-4); "
        "two threads: the same bits\n",
        from.shard(), forward_error, backward_error);
  }
};

// The best rate of products of matrices, in operations a second: as one product on LibTorch's own threads, and as one
// product on each of ours.
class Products {
 public:
  explicit Products(Workers& pair) : pair_(pair) {
    for (std::int64_t n : {768, 1536}) matrices_.push_back(normals({n, n}, Stream::sampling));
  }
  template <class Clock>
  double rate(int threads, Clock&& seconds) {
    double best = 0;
    for (const at::Tensor& m : matrices_) {
      const double work = 2 * std::pow(static_cast<double>(m.size(0)), 3);
      const auto multiply = [&] { at::mm(m, m); };
      at::set_num_threads(threads);
      best = std::max(best, work / seconds(multiply));
      if (threads == 1) continue;
      const auto apart = [&](std::size_t) {
        at::set_num_threads(1);
        multiply();
      };
      best = std::max(best, threads * work / seconds([&] { pair_.for_each(2, 1, apart); }));
    }
    return best;
  }

 private:
  Workers& pair_;
  std::vector<at::Tensor> matrices_;
};

std::string network_steps() {
  NetworkBench bench;
  std::string text =
      fmt::format("\na U-Net of {:.2f} million parameters, 32 images of 32 x 32 (LibTorch {}): medians of 9 turns\n",
                  static_cast<double>(bench.theta.size()) / 1e6, TORCH_VERSION);
  text += bench.verify();
  const double forward_work = operations_of([&] { bench.forward_at_once(1); });
  Workers pair(2);
  Products products(pair);
  text += fmt::format("  {:>30}{:>10}{:>14}{:>18}{:>16}{:>12}\n", "", "ms", "in one call", "one call / ours",
                      "of products", "GFLOPS");
  for (const int threads : {1, 2}) {
    Workers* workers = threads == 1 ? nullptr : &pair;
    const auto seconds = [&](auto&& work) { return threads == 1 ? processor_seconds_of(work) : seconds_of(work); };
    struct Row {
      const char* name;
      double work;
      std::vector<double> ours, at_once, ratios, shares;
    } rows[] = {{"forward", forward_work, {}, {}, {}, {}}, {"forward and backward", 3 * forward_work, {}, {}, {}, {}}};
    for (int turn = 0; turn <= 9; ++turn) {  // the first is for warming up
      const double best = products.rate(threads, seconds);
      for (Row& row : rows) {
        const bool back = &row != rows;
        const double ours = seconds([&] { back ? bench.backward(workers) : bench.forward(workers); });
        const double at_once = seconds([&] {
          if (back)
            bench.backward_at_once(threads);
          else
            bench.forward_at_once(threads);
        });
        if (turn == 0) continue;
        row.ours.push_back(ours);
        row.at_once.push_back(at_once);
        row.ratios.push_back(at_once / ours);
        row.shares.push_back(row.work / ours / best);
      }
    }
    at::set_num_threads(1);
    for (const Row& row : rows)
      text += fmt::format("  {:>30}{:>10.1f}{:>14.1f}{:>18.2f}{:>16.2f}{:>12.1f}\n",
                          fmt::format("{}, {} thread{}", row.name, threads, threads == 1 ? "" : "s"),
                          median(row.ours) * 1e3, median(row.at_once) * 1e3, median(row.ratios), median(row.shares),
                          row.work / median(row.ours) / 1e9);
  }
  return text;
}

// ---- the gradient of a reward through a chain

std::string chain_gradients() {
  constexpr std::size_t length = 64, images = 8;
  const Network network = make_unet(bench_unet());
  const TensorParameters theta = initial_unet(bench_unet(), Noise(1));
  const TimeGrid grid = cosine_grid(length);
  const auto brightness = [](const at::Tensor& x) { return (x.flatten(1).mean(1) + 1) / 2; };
  Chain chain(NetworkSteps(network), grid, {.dynamics = Dynamics::ddim});
  PathGradient<NetworkSteps> adjoint(chain, brightness);
  TensorParameters gradient = zeros_like(theta), replayed = gradient;
  Batch fresh = Batch::of(TensorSamples(images, network.sample)), kept = fresh;
  const DenoisingStart<NetworkSteps> start{Noise(2)};
  start.draw(kept, 0);
  const TensorSamples noise = kept.points;
  DenoisingSampler<NetworkSteps>(chain).advance(kept, theta, {});
  const problems::WholeGraph whole{network, Prediction::epsilon, Dynamics::ddim, grid, Noise(2), {}, {}, brightness};
  at::Tensor expected;
  const auto all_the_way = [&] {
    start.draw(fresh, 0);
    adjoint.sample_and_estimate(fresh, theta, {}, gradient);
  };
  const auto along_the_path = [&] { adjoint.estimate(kept, theta, 0, replayed); };
  const auto whole_graph = [&] { expected = whole(theta, noise, 0).gradient; };

  const auto memory = megabytes_of(all_the_way), whole_memory = megabytes_of(whole_graph);
  along_the_path();
  const double error = relative(gradient.read(), expected);
  require_right(error < 1e-4 && gradient == replayed,
                fmt::format("the gradient through a chain differs from that of the whole graph by {}", error));
  std::vector<double> ours, along, theirs, ratios, along_ratios;
  for (int turn = 0; turn < 3; ++turn) {
    ours.push_back(processor_seconds_of(all_the_way));
    theirs.push_back(processor_seconds_of(whole_graph));
    along.push_back(processor_seconds_of(along_the_path));
    ratios.push_back(ours.back() / theirs.back());
    along_ratios.push_back(along.back() / theirs.back());
  }
  std::string text = fmt::format(
      "\nthe gradient of a reward through {} steps of the same network, {} images, one thread: processor time, medians "
      "of 3 turns\n",
      length, images);
  text += fmt::format("  verified: the adjoint against the whole graph, relative difference {:.1e} (allowed 1e-4)\n",
                      error);
  const auto row = [&](const char* name, double seconds, const std::optional<Megabytes>& m, double ratio) {
    text += fmt::format("  {:<44}{:>8.2f} s{:>8.2f}", name, seconds, ratio);
    text += m ? fmt::format("{:>10.0f} MB{:>8.3f}\n", m->extra(), m->extra() / whole_memory->extra()) : "\n";
  };
  row("backpropagation through the whole graph", median(theirs), whole_memory, 1);
  row("adjoint, along a path that was kept", median(along), {}, median(along_ratios));
  row("sampling and adjoint", median(ours), memory, median(ratios));
  return text + "  memory: the peak of the resident memory during the first call, beyond what there was before\n";
}

// ---- steps of the paper's experiments

ImagesPlan paper_experiment(const char* name) {
  const auto experiment = load_experiment(name, {.set = {{"size", "paper", "size"}}});
  return dynamic_cast<const ImagesExperiment&>(*experiment).configuration();
}

// A model of the experiment's shape; that its weights are random changes no time.
Diffusion untrained(const ImagesConfiguration& c) {
  return new_diffusion(c.network, Noise(c.seed), c.predicts_v ? Prediction::v : Prediction::epsilon, c.horizon,
                       /*zero_outputs=*/false);
}

struct StepCost {
  double seconds, processor_seconds;
  std::optional<Megabytes> memory;
};
template <class Work>
StepCost cost_of(Work&& work) {
  StepCost c{};
  c.memory = megabytes_of([&] { c.seconds = seconds_of([&] { c.processor_seconds = processor_seconds_of(work); }); });
  return c;
}
std::string cost_text(const StepCost& c) {
  return fmt::format("{:.1f} s, {:.1f} s of processor time{}", c.seconds, c.processor_seconds,
                     c.memory ? fmt::format(", at most {:.2f} GB", c.memory->most / 1024) : "");
}
// The same step of other sizes: its time is proportional to its work.
std::string extrapolated(const StepCost& c, double factor) {
  const double seconds = c.seconds * factor;
  return seconds < 600 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.1f} h", seconds / 3600);
}

std::string finetuning_step(const char* name, std::int64_t length, std::int64_t images, std::size_t shard,
                            Workers& workers) {
  ImagesPlan c = paper_experiment(name);
  const std::int64_t paper_length = c.steps_per_sample, paper_images = c.finetune.batch;
  c.steps_per_sample = length;
  const Diffusion model = untrained(c);
  Chain chain(model.steps(Noise(c.seed), &workers, shard), c.time_grid(model.horizon),
              {.dynamics = c.dynamics, .slots = static_cast<std::size_t>(c.slots), .last_step = c.last_step},
              std::pair{NetworkSteps::model(), model.theta});
  DenoisingSampler<NetworkSteps> sampler(chain);
  PathGradient<NetworkSteps> gradient(chain, c.reward == "redness" ? redness_reward() : brightness_reward(),
                                      {c.lambda, c.beta});
  DenoisingStart<NetworkSteps> start{Noise(c.seed)};
  QueueState<Batch, ScheduledAdam, TensorParameters> state{
      0, model.theta, {}, ScheduledAdam({.adam = {.rate = c.finetune.learning_rate}})};
  const QueueOptions options{.steps = 1, .slots = c.slots};
  // The queue of a run that is under way, but for the values of its samples, which change no time.
  for (std::int64_t m = 0; m <= c.slots; ++m) {
    Batch b = Batch::of(TensorSamples(static_cast<std::size_t>(images), model.network.sample, at::kFloat, shard));
    start.draw(b, -m);
    b.step = static_cast<std::size_t>(m * length / c.slots);
    b.path.assign(b.step, b.points);
    b.penalty = TensorTiles::numbers(b.points);
    state.slots.push_back(std::move(b));
  }
  Outcome outcome;
  const StepCost cost = cost_of([&] { outcome = queue_loop(sampler, gradient, start, state, options); });
  require_right(outcome.status == Status::completed && !state.theta.same(model.theta), "finetuning did not move");
  const double factor = static_cast<double>(paper_length * paper_images) / static_cast<double>(length * images);
  std::string text =
      fmt::format("  {}: one step of finetuning, {:.1f} million parameters, T = {}, M = {}, batch {}, shards of {}\n",
                  name, static_cast<double>(model.theta.size()) / 1e6, length, c.slots, images, shard);
  text += fmt::format("    {}\n", cost_text(cost));
  if (factor != 1)
    text += fmt::format("    with the paper's T = {} and batch {}, {} times that: {}\n", paper_length, paper_images,
                        factor, extrapolated(cost, factor));
  // Slot m of M has made m T / M steps, and keeps them.
  const double path = static_cast<double>(paper_length * (c.slots + 1)) / 2 * static_cast<double>(paper_images) *
                      static_cast<double>(elements_of(model.network.sample)) * sizeof(float);
  return text + fmt::format("    the paths in the queue take {:.2f} GB of memory then\n", path / (1 << 30));
}

std::string pretraining_step(const char* name, std::int64_t images, Workers& workers) {
  const ImagesPlan c = paper_experiment(name);
  const auto shard = static_cast<std::size_t>(c.pretrain.shard);
  const Diffusion model = untrained(c);
  const NetworkSteps steps = model.steps(Noise(c.seed), &workers, shard);
  LossGradient gradient(model.network,
                        score_matching_loss({.prediction = model.prediction,
                                             .law = c.uniform_levels ? LevelLaw::uniform : LevelLaw::cosine,
                                             .horizon = c.horizon,
                                             .time = steps.options().time,
                                             .noise = Noise(c.seed)}),
                        &workers);
  struct RandomImages {
    void draw(TensorSamples& x, std::int64_t round) const {
      TensorTiles::fill_normals(x, Noise(5), Stream::initial, {.round = round});
    }
  } source;
  TrainingState state{0, model.theta, places(model, static_cast<std::size_t>(images), shard),
                      AveragedAdam({{.adam = {.rate = c.pretrain.learning_rate}}, c.pretrain.average})};
  Outcome outcome;
  const auto train_until = [&](std::int64_t step) { outcome = train(gradient, source, state, step); };
  train_until(1);  // what is made once
  const StepCost cost = cost_of([&] { train_until(2); });
  require_right(outcome.status == Status::completed && std::isfinite(gradient.loss()), "training did not move");
  const double factor = static_cast<double>(c.pretrain.batch) / static_cast<double>(images);
  return fmt::format(
      "  {}: one step of pretraining, {:.1f} million parameters, batch {}, shards of {}\n    {}\n    with the paper's "
      "batch {}, {} times that: {}\n",
      name, static_cast<double>(model.theta.size()) / 1e6, images, shard, cost_text(cost), c.pretrain.batch, factor,
      extrapolated(cost, factor));
}

}  // namespace

int bench_networks(std::string_view only) {
  const std::size_t cores = std::thread::hardware_concurrency();
  if (only == "paper") {
    Workers workers(cores);
    print(fmt::format("{}, LibTorch {}: steps of the paper's experiments with images, {} threads\n", processor_name(),
                      TORCH_VERSION, workers.threads()));
    print(pretraining_step("cifar10", 64, workers));
    print(finetuning_step("mnist", 256, 32, 8, workers));
    print(finetuning_step("cifar10", 32, 8, 4, workers));
    return 0;
  }
  if (only == "networks") print(fmt::format("{}, {} cores\n", processor_name(), cores));
  print(network_steps());
  print(chain_gradients());
  return 0;
}

}  // namespace program
