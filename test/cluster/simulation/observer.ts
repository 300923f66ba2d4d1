import type { FeedEvent } from '../../../src/protocol/event.js';
import type { OwnerChanged } from '../../../src/protocol/event.js';

/** Knows what was really sent, and compares it with what each replica emits. */
export interface Observer {
  /** Records a frame that an owner publishes. @param gen - its generation and its id */
  readonly published: (gen: string, number: number) => void;
  /** Checks what a replica emits. */
  readonly emitted: (replica: string, event: FeedEvent | OwnerChanged) => void;
  readonly violations: readonly string[];
  readonly report: (violation: string) => void;
  readonly framesChecked: () => number;
  /** When a replica has emitted its last frame, in ms; `-Infinity` if it has emitted none. */
  readonly lastFrameAt: (replica: string) => number;
}

interface Seen {
  readonly at: number;
  number: number;
  gen: string;
  index: number;
  /** The frames of the gaps since the last frame; `undefined` if one of them has no number. */
  missed: number | undefined;
  hasGap: boolean;
}

/** Creates an observer. The number of a frame is its `receivedAt`. */
export const createObserver = (now: () => number, hasLostHistory: () => boolean): Observer => {
  const violations: string[] = [];
  const places = new Map<number, { readonly gen: string; readonly index: number }>();
  const counts = new Map<string, number>();
  const seen = new Map<string, Seen>();
  let framesChecked = 0;

  const report = (violation: string): void => {
    violations.push(`${now().toFixed(0)} ms: ${violation}`);
  };

  const checkFrame = (replica: string, number: number): void => {
    framesChecked += 1;
    const place = places.get(number);
    if (place === undefined) return report(`${replica} emits frame ${number}, which no owner published`);
    const last = seen.get(replica);
    seen.set(replica, { at: now(), number, ...place, missed: 0, hasGap: false });
    if (last === undefined) return;
    const { gen, index } = place;
    // After a loss of data a new owner can have a lower generation than one whose last frames are still under way. A gap precedes them.
    if (number <= last.number && gen !== last.gen && last.hasGap && hasLostHistory()) return;
    if (number <= last.number) return report(`${replica} emits frame ${number} after ${last.number}`);
    if (number > last.number + 1 && !last.hasGap)
      return report(`${replica} has no gap between frames ${last.number} and ${number}`);
    if (gen !== last.gen) {
      if (!last.hasGap) report(`${replica} has no gap at generation ${gen}`);
      return;
    }
    const missing = index - last.index - 1;
    if (last.missed !== undefined && missing !== last.missed)
      report(`${replica} misses ${missing} frames before ${number}, its gaps say ${last.missed}`);
  };

  return {
    published: (gen, number) => {
      const index = counts.get(gen) ?? 0;
      counts.set(gen, index + 1);
      places.set(number, { gen, index });
    },
    emitted: (replica, event) => {
      if (event.type === 'frame') return checkFrame(replica, event.receivedAt);
      const last = seen.get(replica);
      if (event.type !== 'gap' || last === undefined) return;
      last.hasGap = true;
      // A gap of the service has no number, and no frame of the owner is missing in it.
      if (event.failure.code === 'owner-changed') last.missed = undefined;
      else if (last.missed !== undefined) last.missed += event.missed ?? 0;
    },
    violations,
    report,
    framesChecked: () => framesChecked,
    lastFrameAt: (replica) => seen.get(replica)?.at ?? -Infinity,
  };
};
