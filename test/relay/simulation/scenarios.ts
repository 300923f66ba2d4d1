import { createChance } from '../../simulation/chance.js';
import { runScenario, type World } from './simulate.js';

export { simulate } from './simulate.js';

/** Runs a scenario, with the fault at 0, after two seconds. Page 0 uses the first relay, or one that relays it. */
const run = (receivesFrom: number, fault: (world: World) => void) => {
  let result: object = {};
  const { violations } = runScenario(createChance(1), (world) => {
    const { link, reader } = world.pages[0]!;
    world.moveTo(link, world.nodes[receivesFrom]!);
    link.cut();
    world.time.pass(2_000);
    const begin = world.time.now();
    const before = world.service.sent.length;
    fault(world);
    world.heal();
    world.time.pass(4_000);
    const gaps = reader.gaps.filter(({ emittedAt }) => emittedAt >= begin);
    result = {
      gaps: gaps.map(({ from, to }) => ({ from: from - begin, to: to - begin })),
      missing: world.service.sent.filter(({ n }) => n > before && n < reader.last && !reader.received.has(n)).length,
    };
  });
  return { violations, ...result };
};

/** The page's relay loses its feed for six seconds. Then the page moves to a relay that has every frame. */
export const moves = () =>
  run(0, (world) => {
    const { feed } = world.nodes[0]!;
    feed!.isRefused = true;
    feed!.drop();
    world.time.pass(6_000);
    world.moveTo(world.pages[0]!.link, world.nodes[1]!);
    world.pages[0]!.link.cut();
    world.time.pass(1_000);
  });

/** The page's relay loses its feed, and restarts five seconds later. */
export const restarts = () =>
  run(0, (world) => {
    const { feed } = world.nodes[0]!;
    feed!.isRefused = true;
    feed!.drop();
    world.time.pass(5_000);
    world.end(world.nodes[0]!, true);
    feed!.isRefused = false;
    world.start(world.nodes[0]!);
    world.moveTo(world.pages[0]!.link, world.nodes[0]!);
    world.time.pass(2_000);
  });

/** The page's relay loses its upstream connection to a stall, notices it, and restarts. */
export const stalls = () =>
  run(2, (world) => {
    const node = world.nodes[2]!;
    node.upstream!.stall();
    world.time.pass(2_000);
    node.upstream!.stall();
    world.end(node, true);
    world.time.pass(2_000);
    world.start(node);
    world.moveTo(world.pages[0]!.link, node);
    world.time.pass(2_000);
  });
