import type { Goal } from './goal.mjs';

/** A chart: `bars` are horizontal, `columns` are a histogram, `lines` have numbers or names as x. */
export interface Chart {
  readonly id: string;
  readonly title: string;
  readonly kind: 'bars' | 'columns' | 'lines';
  readonly x?: string;
  readonly y?: string;
  readonly log?: boolean | 'x' | 'y';
  readonly highlight?: string;
  readonly series: readonly {
    readonly name: string;
    readonly points: readonly (readonly [number | string, number])[];
  }[];
}

export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (number | string)[])[];
}

export interface Report {
  readonly name: string;
  readonly command: string;
  readonly goals?: readonly Goal[];
  readonly charts?: readonly Chart[];
  readonly tables?: readonly Table[];
  readonly facts?: Readonly<Record<string, number | string>>;
  readonly keep?: boolean;
}

export const report: (of: Report) => Promise<Required<Omit<Report, 'keep'>>>;
export const intoGuide: (result: Required<Omit<Report, 'keep'>>) => Promise<string>;
