import { type Frame, TradeFeedError } from '../../index.js';
import { writeFrame } from '../../operators/node/write-frame.js';
import { printable } from '../../protocol/printable.js';
import { type CliContext, isTerminal } from '../context.js';
import type { CliEvent } from '../follow/event.js';
import type { OutputLine } from './line-writer.js';

/** Returns the line of an event, or `undefined` for an event without a line. */
export type Format = (event: CliEvent) => OutputLine | undefined;

/** Returns the format for stdout: JSON or payloads, for a terminal or for another program. */
export const formatFor = ({ json }: { readonly json?: true }, context: CliContext): Format => {
  const isShown = isTerminal(context.stdout, context);
  if (json) return isShown ? terminalJsonFormat : jsonFormat;
  return isShown ? terminalFormat : plainFormat;
};

const newline = Buffer.from('\n');

/** Formats frames for a pipe or a file: a text payload unchanged, a binary one in base64. */
export const plainFormat: Format = (event) => {
  if (event.type !== 'frame') return undefined;
  return event.isBinary ? base64Line(event) : Buffer.concat([event.data, newline]);
};

/** Formats frames for a terminal. Control characters are replaced, so that a payload cannot control the terminal. */
export const terminalFormat: Format = (event) => {
  if (event.type !== 'frame') return undefined;
  return event.isBinary ? base64Line(event) : `${printable(event.text())}\n`;
};

const base64Line = ({ data }: Frame): string => `${data.toString('base64')}\n`;

/**
 * Formats frames, lifecycle events and the failure that stopped the feed as JSON, for a pipe or a file. The line of a frame or a gap equals its
 * line in a recording.
 */
export const jsonFormat: Format = (event) => {
  if (event.type === 'frame') return `${writeFrame(event)}\n`;
  if (event.type === 'tick') return undefined;
  if (event.type !== 'ended') return `${JSON.stringify(event)}\n`;
  return event.ending.kind === 'failed' ? `${stoppedRecord(event.ending.error)}\n` : undefined;
};

/** Formats events as JSON for a terminal. Characters that JSON does not escape but that can control a terminal are escaped. */
const terminalJsonFormat: Format = (event) => {
  const line = jsonFormat(event);
  return line === undefined ? undefined : String(line).replaceAll(terminalControls, escapeCharacter);
};

const terminalControls = /[\u007f-\u009f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/g;

const escapeCharacter = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Returns the JSON line that replaces lines dropped because the reader was too slow. */
export const droppedRecord = (lines: number): string => JSON.stringify({ type: 'dropped', at: Date.now(), lines });

/** Returns the last line: the JSON of the failure that stopped the feed. */
const stoppedRecord = (error: unknown): string =>
  JSON.stringify({
    type: 'stopped',
    at: Date.now(),
    failure: error instanceof TradeFeedError ? error : { message: String(error) },
  });
