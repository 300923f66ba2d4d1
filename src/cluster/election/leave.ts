import { endElection } from './election.js';
import { change, type Turn } from './turn.js';

/** Ends the election of this replica with an error. */
export const fail = (turn: Turn, isReplaced: boolean): void => {
  endFeed(turn);
  turn.effects.push({ type: 'fail', isReplaced });
  turn.state = endElection(turn.state, 'stopped');
};

/** Ends the election of this replica, because it shuts down. */
export const leave = (turn: Turn): void => {
  endFeed(turn);
  turn.effects.push({ type: 'left' });
  turn.state = endElection(turn.state, 'left');
};

/** Closes the feed, if there is one, and reports the end of its generation. */
export const endFeed = (turn: Turn): void => {
  const { own, draining } = turn.state;
  const gen = draining ?? own?.gen;
  if (gen === undefined) return;
  turn.effects.push({ type: 'close' }, { type: 'end', gen });
  change(turn, { draining: undefined });
};
