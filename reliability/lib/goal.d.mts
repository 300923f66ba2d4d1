/** A rule and its measured value. */
export interface Goal {
  readonly what: string;
  readonly wanted: string;
  readonly measured: number | string;
  readonly met: boolean;
}

type Compare = (what: string, measured: number | undefined, than: number, unit?: string) => Goal;

export const atMost: Compare;
export const atLeast: Compare;
export const exactly: Compare;
export const holds: (what: string, met: boolean, measured?: number | string) => Goal;
