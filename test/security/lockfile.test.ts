import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Entry {
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly hasInstallScript?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
}

interface Lockfile {
  readonly lockfileVersion: number;
  readonly packages: Readonly<Record<string, Entry>>;
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
  readonly files: readonly string[];
}

const read = (path: string): unknown =>
  JSON.parse(readFileSync(join(import.meta.dirname, '../..', path), 'utf8')) as unknown;

const entriesOf = ({ packages }: Lockfile) => Object.entries(packages).filter(([path]) => path !== '');

/** Returns what's wrong with the source or the hash of an entry. */
const problemOf = ([path, { integrity, resolved, link }]: [string, Entry]): string | undefined => {
  if (link) return `${path} is a link`;
  if (!/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? '')) return `${path} has no sha512`;
  // An entry without an address comes from the registry that the installer has configured.
  return resolved !== undefined && !resolved.startsWith('https://') ? `${path} does not come over https` : undefined;
};

const lockfiles = [
  '',
  'examples/nestjs-angular/',
  'reliability/mutation/',
  'test/apps/angular-20/',
  'test/apps/angular-22/',
  'test/apps/bundlers/',
  'test/apps/typescript/',
];

describe.each(lockfiles.map((folder) => `${folder}package-lock.json`))('%s', (file) => {
  const lockfile = read(file) as Lockfile;

  it('has version 3, a hash for every package, and only https downloads', () => {
    expect(lockfile.lockfileVersion).toBe(3);
    expect(entriesOf(lockfile).length).toBeGreaterThan(5);
    // The app gets this package itself from a separate tarball or from the registry.
    const isThisPackage = ([path]: [string, Entry]) => path === 'node_modules/rx-trade-feed';
    const others = entriesOf(lockfile).filter((entry) => !isThisPackage(entry));
    expect(others.flatMap((entry) => problemOf(entry) ?? [])).toEqual([]);
  });
});

describe('the installation of a user', () => {
  const lockfile = read('package-lock.json') as Lockfile;
  const manifest = read('package.json') as Manifest;
  const installed = entriesOf(lockfile).filter(([, { dev, devOptional }]) => !dev && !devOptional);

  it('runs no install script, neither this package nor its dependencies', () => {
    expect(installed.filter(([, { hasInstallScript }]) => hasInstallScript)).toEqual([]);
    const hooks = ['preinstall', 'install', 'postinstall', 'prepare'];
    expect(Object.keys(manifest.scripts).filter((name) => hooks.includes(name))).toEqual([]);
  });

  it('has seven packages, one of which has five dependencies by one maintainer', () => {
    const names = ['@standard-schema/spec', 'commander', 'fp-ts', 'fs-native-extensions', 'io-ts', 'undici', 'ws'];
    // They find the binary of fs-native-extensions for the system.
    const further = ['bare-addon-resolve', 'bare-module-resolve', 'bare-semver', 'require-addon', 'which-runtime'];
    expect(Object.keys(manifest.dependencies)).toEqual(names);
    expect(installed.map(([path]) => path)).toEqual(
      [...names, ...further].sort().map((name) => `node_modules/${name}`),
    );
    const ownDependencies = installed.flatMap(([path, { dependencies = {} }]) =>
      path === 'node_modules/fs-native-extensions' || !names.some((name) => path === `node_modules/${name}`)
        ? []
        : Object.keys(dependencies),
    );
    expect(ownDependencies).toEqual([]);
  });

  it('contains only the command, the built files, the guides, the README and the license', () => {
    const allowed = /^(?:bin|dist|README\.md|LICENSE|!?docs\/.*)$/;
    expect(manifest.files.filter((pattern) => !allowed.test(pattern))).toEqual([]);
  });
});
