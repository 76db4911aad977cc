// What the program has, which links no LibTorch, in the place of what needs it: it becomes the executable with networks
// before any of this could be called.
#include "denoising_mixture/results.hpp"
#include "ebm_network/experiment.hpp"
#include "images/experiment.hpp"
#include "networks/environment.hpp"

#include <stdexcept>

namespace program {

bool has_networks() { return false; }
void start_networks() {}
void add_network_commands(CommandLine&) {}

namespace {

[[noreturn]] void never() { throw std::logic_error("networks are in the other executable"); }

}  // namespace

int bench_networks(std::string_view) { never(); }
std::string train_score_network(const DenoisingConfiguration&, const RunContext&, const std::filesystem::path&) {
  never();
}
DenoisingRow run_score_network(const DenoisingConfiguration&, const RunContext&, const std::filesystem::path&) {
  never();
}
std::vector<Problem> check_score_network(const DenoisingConfiguration&) { never(); }
int EbmNetworkExperiment::run(const RunOptions&) const { never(); }
std::vector<Problem> EbmNetworkExperiment::checks() const { never(); }
int run_images(const ImagesExperiment&, const RunOptions&) { never(); }
std::vector<Problem> check_images(const ImagesPlan&) { never(); }

}  // namespace program
