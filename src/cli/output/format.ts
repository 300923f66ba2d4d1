import { type CliContext, isTerminal } from '../context.js';
import type { Happening } from '../follow/happening.js';
import { frameLine, shownFrameLine } from './frame-line.js';
import type { QueuedLine } from './line-queue.js';
import { eventRecord, frameRecord, stoppedRecord } from './record.js';

/** Makes the line of what happened, or nothing. */
export type Format = (happening: Happening) => QueuedLine | undefined;

/** Gives the format that stdout wants. */
export const formatFor = ({ json }: { readonly json?: true }, context: CliContext): Format => {
  if (json) return jsonFormat;
  return isTerminal(context.stdout, context) ? shownFormat : plainFormat;
};

/** Frames alone, for a pipe or a file. */
export const plainFormat: Format = (happening) => (happening.type === 'frame' ? frameLine(happening) : undefined);

/** Frames alone, for a terminal. */
export const shownFormat: Format = (happening) => (happening.type === 'frame' ? shownFrameLine(happening) : undefined);

/** Everything but the ticks, as JSON. */
export const jsonFormat: Format = (happening) => {
  if (happening.type === 'frame') return `${frameRecord(happening)}\n`;
  if (happening.type === 'tick') return undefined;
  if (happening.type !== 'ended') return `${eventRecord(happening)}\n`;
  return happening.ending.kind === 'failed' ? `${stoppedRecord(happening.ending.error)}\n` : undefined;
};
