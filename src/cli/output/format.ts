import { type CliContext, isTerminal } from '../context.js';
import type { Happening } from '../follow/happening.js';
import { frameLine, shownFrameLine } from './frame-line.js';
import type { QueuedLine } from './line-queue.js';
import { eventRecord, frameRecord, stoppedRecord } from './record.js';

/** Makes the line of what happened, or nothing. */
export type Format = (happening: Happening) => QueuedLine | undefined;

/** Gives the format that stdout wants. */
export const formatFor = ({ json }: { readonly json?: true }, context: CliContext): Format => {
  const isShown = isTerminal(context.stdout, context);
  if (json) return isShown ? shownJsonFormat : jsonFormat;
  return isShown ? shownFormat : plainFormat;
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

/** The same JSON for a terminal, which must not be steered by a payload: what JSON leaves as it is and could do so is written as an escape. */
export const shownJsonFormat: Format = (happening) => {
  const line = jsonFormat(happening);
  return line === undefined ? undefined : String(line).replaceAll(steering, asEscape);
};

const steering = /[\u007f-\u009f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/g;

const asEscape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
