import { change, type Turn } from './turn.js';

/** Ends the election of this replica with an error. */
export const fail = (turn: Turn, isReplaced: boolean): void => {
  endFeed(turn);
  turn.effects.push({ type: 'fail', isReplaced });
  change(turn, { role: 'stopped', own: undefined, call: undefined, ask: undefined, wanted: undefined, timers: {} });
};

/** Ends the election of this replica, because it shuts down. */
export const leave = (turn: Turn): void => {
  endFeed(turn);
  turn.effects.push({ type: 'left' });
  change(turn, { role: 'left', own: undefined, call: undefined, ask: undefined, wanted: undefined, timers: {} });
};

/** Closes the feed, if there is one, and reports the end of its generation. */
export const endFeed = (turn: Turn): void => {
  const { own, draining } = turn.state;
  const gen = draining ?? own?.gen;
  if (gen === undefined) return;
  turn.effects.push({ type: 'close' }, { type: 'end', gen });
  change(turn, { draining: undefined });
};
