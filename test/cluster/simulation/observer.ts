import type { FeedEvent, OwnerChanged } from '../../../src/protocol/event.js';
import type { Frame } from '../../../src/protocol/frame.js';

export type Observer = ReturnType<typeof createObserver>;

interface Seen {
  readonly at: number;
  number: number;
  gen: string;
  index: number;
  /** Frames in the gaps since the last frame; `undefined` if a gap has no number. */
  missed: number | undefined;
  hasGap: boolean;
}

/** The payload of a frame is its number. */
export const payloadOf = (number: number): Buffer => {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(number);
  return payload;
};

export const numberOf = ({ data }: Frame): number => data.readUInt32BE();

/** How far a replica may be ahead of real time, in ms: uncorrected clock differences, and messages that waited. */
const maxAheadMs = 1_000;

/**
 * Knows what was really sent, and compares it with what each replica emits.
 *
 * @param hasLostHistory - whether the store has lost data
 * @param areClocksSteady - whether no clock jumps or stands still
 * @param isNeverPaused - whether no replica handles its first messages late, which hides how far it is ahead
 */
export const createObserver = (
  now: () => number,
  hasLostHistory: () => boolean,
  areClocksSteady: () => boolean,
  isNeverPaused: () => boolean,
) => {
  const violations: string[] = [];
  const places = new Map<number, { readonly gen: string; readonly index: number }>();
  const counts = new Map<string, number>();
  const seen = new Map<string, Seen>();
  /** Each replica's last time, and the most that one was ahead of virtual time. */
  const times = new Map<string, { readonly at: number; readonly ahead: number; readonly isCutOff: boolean }>();
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
    // Once data is lost, a new owner may have a lower generation than one with frames under way. A gap is between.
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

  /** Times never go back, and never get far ahead, although the owners' clocks differ by up to a minute. */
  const checkTime = (replica: string, event: FeedEvent | OwnerChanged): void => {
    const at = event.type === 'frame' ? event.receivedAt : event.type === 'gap' ? event.to : event.at;
    const last = times.get(replica);
    // A replica that was cut off accepts any next time, because it may have slept.
    const isOfOwner = event.type === 'frame' || event.type === 'watermark';
    const isCutOff = event.type === 'disconnected' || (last?.isCutOff === true && !isOfOwner);
    const ahead = at - now();
    const known = last?.ahead ?? ahead;
    times.set(replica, { at, ahead: Math.max(ahead, known), isCutOff });
    if (last === undefined) return;
    if (at < last.at - 1e-3) report(`${replica} emits ${event.type} ${(last.at - at).toFixed(1)} ms back in time`);
    if (isNeverPaused() && !last.isCutOff && !isCutOff && ahead - known > maxAheadMs)
      report(`${replica} emits ${event.type} ${(ahead - known).toFixed(0)} ms ahead of the time`);
  };

  return {
    /** Records a frame that an owner publishes. @param gen - its generation and its id */
    published: (gen: string, number: number): void => {
      const index = counts.get(gen) ?? 0;
      counts.set(gen, index + 1);
      places.set(number, { gen, index });
    },
    emitted: (replica: string, event: FeedEvent | OwnerChanged): void => {
      if (areClocksSteady()) checkTime(replica, event);
      if (event.type === 'frame') return checkFrame(replica, numberOf(event));
      const last = seen.get(replica);
      if (event.type !== 'gap' || last === undefined) return;
      last.hasGap = true;
      // A gap of the service has no number, and none of the owner's frames are missing in it.
      if (event.failure.code === 'owner-changed') last.missed = undefined;
      else if (last.missed !== undefined) last.missed += event.missed ?? 0;
    },
    violations: violations as readonly string[],
    report,
    framesChecked: (): number => framesChecked,
    lastFrameAt: (replica: string): number => seen.get(replica)?.at ?? -Infinity,
  };
};
