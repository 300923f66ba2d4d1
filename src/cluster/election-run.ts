import { clampMs } from '../protocol/rules.js';
import { type Effect, type Election, type Input, nextTick } from './election/election.js';
import { step } from './election/step.js';

/** An election with its clock and its timer. */
export interface ElectionRun {
  readonly state: Election;
  /** Handles an input, and performs its effects. Does nothing after `stop`. */
  readonly input: (input: Input) => void;
  stop(): void;
}

/** What an {@link ElectionRun} needs and reports. */
export interface ElectionHandlers {
  /** The highest generation of the frames that this replica emits. */
  readonly followed: () => number;
  /** Is called with the new state before its effects are performed. */
  readonly changed: (state: Election) => void;
  readonly perform: (effect: Effect) => void;
  /** Is called when no effect and no input is left. */
  readonly settled: (state: Election) => void;
}

/** Creates an {@link ElectionRun}. It begins with the input `start`. */
export const createElectionRun = (
  initial: Election,
  { followed, changed, perform, settled }: ElectionHandlers,
): ElectionRun => {
  const inputs: Input[] = [];
  let state = initial;
  let isBusy = false;
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;

  const schedule = (): void => {
    clearTimeout(timer);
    const at = nextTick(state);
    if (at === Infinity) return;
    timer = setTimeout(() => input({ type: 'tick' }), clampMs(Math.max(0, Math.ceil(at - performance.now()))));
  };

  const handle = (each: Input): void => {
    const clock = { now: performance.now(), wall: Date.now(), random: Math.random(), followed: followed() };
    const result = step(state, each, clock);
    ({ state } = result);
    changed(state);
    // An effect, or the engine, can end the replica.
    for (const effect of result.effects) if (!isStopped) perform(effect);
  };

  const input = (each: Input): void => {
    if (isStopped) return;
    // An effect can cause the next input before the other effects are done.
    inputs.push(each);
    if (isBusy) return;
    isBusy = true;
    for (let next = inputs.shift(); next !== undefined; next = inputs.shift()) handle(next);
    isBusy = false;
    settle();
  };

  const settle = (): void => {
    if (isStopped) return;
    schedule();
    settled(state);
  };

  return {
    get state() {
      return state;
    },
    input,
    stop: () => {
      isStopped = true;
      inputs.length = 0;
      clearTimeout(timer);
    },
  };
};
