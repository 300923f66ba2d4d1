import type { Columns } from '../feed/history';

/** How a line looks. */
export type Tone = 'strong' | 'soft' | 'dashed';

/** A figure that a chart shows. */
export interface Figure {
  readonly id: string;
  readonly title: string;
  /** What it measures, where the title does not say it all. */
  readonly help?: string;
  /** Its lines, the most important one first. */
  readonly lines: readonly { readonly label: string; readonly tone: Tone }[];
  /** The values of the moment, one a line; `undefined`: none. */
  readonly now: () => readonly (number | undefined)[];
  /** Picks the columns, one a line. */
  readonly columns: (columns: Columns) => readonly (readonly (number | null)[])[];
  /** Says a value: figure and unit. */
  readonly parts: (value: number | undefined) => readonly [figure: string, unit: string];
  /** Whether this page measures it, so that it begins with the page. */
  readonly beginsWithPage?: boolean;
  /** How high the axis is at least. */
  readonly least: number;
  /** Says a value at the axis. */
  readonly tick: (value: number) => string;
}
