import type { FrameRing } from '../feed/frame-ring';
import type { Row } from '../feed/row';
import { jsonTokens } from './payload';

/** A value in a payload. */
export interface Field {
  /** The key of the value; empty for a payload that isn't JSON. */
  readonly name: string;
  readonly value: string;
  readonly isText: boolean;
}

/** What the values of a name have in common. */
interface Common {
  readonly first: string;
  /** The start of all values. */
  start: string;
  isSame: boolean;
  /** How many frames have this name, and the number of the last one. */
  frames: number;
  last: number;
}

/** How many frames are read in a step. The others would teach the same. */
const framesPerStep = 20;
/** Payloads can have new names in every frame. */
const mostNames = 500;
/** A common start that is shorter is shown. */
const leastElided = 6;
/** The end of a value that is always shown. */
const leastShown = 4;

/** Learns what the payloads of frames have in common, and returns what differs. */
export class Differences {
  private readonly names = new Map<string, Common>();
  private learned = 0;
  private newest = 0;

  /** Learns from the newest frames. A difference stays one, so that the shown fields don't jump. */
  learn(ring: FrameRing): void {
    const from = Math.max(this.newest, ring.newest - framesPerStep, ring.oldest - 1) + 1;
    for (let number = from; number <= ring.newest; number += 1) this.read(ring.row(number) as Row);
    this.newest = ring.newest;
  }

  /** Returns the fields of a row that differ from frame to frame, without their common start; all fields if none differs. */
  of(row: Row): readonly Field[] {
    const fields = fieldsOf(row);
    const differing = fields.filter(({ name }) => this.differs(name));
    return differing.length === 0 ? fields : differing.map((field) => this.elided(field, row.frame.isBinary));
  }

  private read(row: Row): void {
    this.learned += 1;
    for (const { name, value } of fieldsOf(row)) {
      const common = this.names.get(name) ?? { first: value, start: value, isSame: true, frames: 0, last: 0 };
      if (common.last !== row.number) common.frames += 1;
      common.last = row.number;
      common.isSame &&= value === common.first;
      common.start = commonStart(common.start, value);
      if (this.names.size < mostNames) this.names.set(name, common);
    }
  }

  private differs(name: string): boolean {
    const common = this.names.get(name);
    // A name that some frames don't have is a difference too.
    return common === undefined || !common.isSame || common.frames < this.learned;
  }

  private elided(field: Field, isBinary: boolean): Field {
    const start = this.names.get(field.name)?.start ?? '';
    const most = Math.min(start.length, field.value.length - leastShown);
    // Two digits and a space are a byte.
    const cut = isBinary ? most - (most % 3) : most;
    return field.isText && cut >= leastElided ? { ...field, value: `…${field.value.slice(cut)}` } : field;
  }
}

/** Returns the values at the start of a payload. */
const fieldsOf = ({ preview, frame }: Row): readonly Field[] => {
  const fields: Field[] = [];
  let name = '';
  for (const { kind, text } of frame.isBinary || !/^[[{]/.test(preview) ? [] : jsonTokens(preview)) {
    if (kind === 'key') name = text.slice(1, text.lastIndexOf('"'));
    else if (kind === 'text') fields.push({ name, value: text.slice(1, -1), isText: true });
    else if (kind === 'number') fields.push({ name, value: text, isText: false });
  }
  return fields.length > 0 ? fields : [{ name: '', value: preview, isText: true }];
};

const commonStart = (one: string, other: string): string => {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return one.slice(0, length);
};
