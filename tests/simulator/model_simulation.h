// The model of the stores for each simulation: what it predicts has to keep every promise too.
#ifndef MATINS_TESTS_SIMULATOR_MODEL_SIMULATION_H_
#define MATINS_TESTS_SIMULATOR_MODEL_SIMULATION_H_

#include "lab/simulator.h"

namespace matins {

SimDatabaseMaker Model();

}  // namespace matins

#endif  // MATINS_TESTS_SIMULATOR_MODEL_SIMULATION_H_
