import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { FeedEvent } from 'rx-trade-feed';
import type { CommandSpec } from '../../src/cli/arguments/commands.js';
import type { Meaning } from '../../src/protocol/failures/meaning.js';
import { root } from './fences.js';

/** What a row of a diagram emits. */
export interface Message {
  readonly at: number;
  readonly value?: FeedEvent;
  readonly label: string;
  readonly kind: string;
}

/** A run of a diagram. */
export interface Run {
  readonly title: string;
  readonly end: number;
  readonly rows: readonly { readonly name: string; readonly messages: readonly Message[] }[];
}

/** The failure tables of the library. */
export type Tables = Readonly<Record<'service' | 'relay' | 'worker' | 'cluster', readonly Meaning[]>>;

/** The functions of `scripts/site` that tests call. */
export interface SiteLibrary {
  readonly diagrams: Readonly<Record<string, unknown>>;
  readonly runNamed: (name: string) => Promise<Run>;
  readonly messagesOf: (line: string) => readonly Message[];
  readonly altTextOf: (run: Run) => string;
  readonly diagramSvg: (run: Run) => string;
  readonly documentedCodes: () => readonly string[];
  readonly failurePage: (text: string, code: string, meanings: readonly Meaning[]) => string;
  readonly failureIndex: (text: string, tables: Tables) => string;
  readonly commandLinePage: (text: string, commands: Readonly<Record<string, CommandSpec>>) => string;
  readonly withClusterGoals: (page: string) => string;
  readonly withPart: (text: string, mark: string, part: string) => string;
  readonly promises: (
    performance?: string,
    reliability?: string,
  ) => readonly { readonly figure: string; readonly text: string }[];
  readonly linkOnSite: (page: string, href: string) => string | undefined;
  readonly imageOnSite: (page: string, src: string) => string;
  readonly plainText: (file: string) => Promise<string>;
  readonly titleOf: (text: string) => string;
  readonly llmsText: (site: {
    readonly title: string;
    readonly description: string;
    readonly groups: readonly Group[];
    readonly titles: Readonly<Record<string, string>>;
  }) => string;
  readonly tokenize: (text: string) => readonly string[];
  readonly windowRun: (values: Readonly<Record<string, number>>) => Run;
  readonly backoffRun: (values: Readonly<Record<string, number | string>>) => Run;
}

/** A group of the sidebar. */
export interface Group {
  readonly text: string;
  readonly link?: string;
  readonly items?: readonly Group[];
}

/** Imports JavaScript modules of `scripts/site` as one object. */
export const siteLibrary = async (...files: readonly string[]): Promise<SiteLibrary> => {
  const modules = files.map((file) => import(pathToFileURL(join(root, 'scripts/site', file)).href) as Promise<object>);
  return Object.assign({}, ...(await Promise.all(modules))) as SiteLibrary;
};
