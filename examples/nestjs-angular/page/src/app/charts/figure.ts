import type { Columns } from '../feed/history';

/** The style of a line. */
export type Tone = 'strong' | 'soft' | 'dashed';

/** The description of a figure with a chart. */
export interface Figure {
  readonly id: string;
  readonly title: string;
  /** An explanation, if the title isn't enough. */
  readonly help?: string;
  /** The lines, the most important one first. */
  readonly lines: readonly { readonly label: string; readonly tone: Tone }[];
  /** Returns the current values, one per line; `undefined` without a value. */
  readonly now: () => readonly (number | undefined)[];
  /** Selects the columns, one per line. */
  readonly columns: (columns: Columns) => readonly (readonly (number | null)[])[];
  /** Formats a value as a figure and its unit. */
  readonly parts: (value: number | undefined) => readonly [figure: string, unit: string];
  /** Whether this page measures the figure, so that its lines begin when the page is loaded. */
  readonly beginsWithPage?: boolean;
  /** The minimum height of the axis. */
  readonly least: number;
  /** Formats a value for the axis. */
  readonly tick: (value: number) => string;
}
