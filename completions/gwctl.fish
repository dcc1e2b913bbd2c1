# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_gwctl_global_optspecs
    string join \n h/help V/version
end

function __fish_gwctl_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_gwctl_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_gwctl_using_subcommand
    set -l cmd (__fish_gwctl_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c gwctl -n "__fish_gwctl_needs_command" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_needs_command" -s V -l version -d 'Print version'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "quickstart" -d 'Run a whole cluster with traffic in this terminal'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "demo-upstream" -d 'The upstream of the quickstart'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "start" -d 'Start a node in the role its settings say (traditional, control_plane or data_plane)'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "reload" -d 'Let a running node read its settings and certificates again (SIGHUP)'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "upgrade" -d 'Let the program on disk take over from a running node, without a lost connection (SIGUSR2)'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "quit" -d 'Stop a node once what is in flight has ended, within shutdown_grace (SIGQUIT)'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "stop" -d 'Stop a node soon, within shutdown_fast_grace (SIGTERM)'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "cp" -d 'Control planes'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "dp" -d 'Data planes'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "certs" -d 'Certificates of a cluster'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "apply" -d 'Bring the configuration of a control plane to what files say'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "diff" -d 'Show what `apply` would do'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "history" -d 'List the versions of the configuration: when, who, how much; or show what one did'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "rollback" -d 'Make the configuration what it was at a version'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "validate" -d 'Find the mistakes of declarative files, with line and column'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "dump" -d 'Write what is configured as a declarative file'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "convert" -d 'Turn files of Kong and of decK into each other'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "get" -d 'List or show what is configured'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "explain" -d 'Tell which route answers a request, and why the others do not'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "top" -d 'Watch the fleet in the terminal'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "config" -d 'Settings of a node'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "completions" -d 'Print the completion script of a shell'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "man" -d 'Write the man pages into a folder'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "version" -d 'Print version and build facts'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "exit-codes" -d 'The codes that commands end with'
complete -c gwctl -n "__fish_gwctl_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gwctl -n "__fish_gwctl_using_subcommand quickstart" -l dir -d 'Folder of the cluster; a fresh one below the user\'s state folder when not given, removed after a clean end' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand quickstart" -l exit-after -d 'Stop by itself after so many seconds' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand quickstart" -l keep -d 'Keep the fresh folder too'
complete -c gwctl -n "__fish_gwctl_using_subcommand quickstart" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand demo-upstream" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand start" -s c -l conf -d 'Settings file in the form of kong.conf' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand start" -s p -l prefix -d 'Folder of the node: store, cache, node id' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand start" -l set -d 'Any setting by its key in kong.conf, may be repeated' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand start" -l until-stdin-ends -d 'Stop when standard input ends, for whoever starts the node as a child'
complete -c gwctl -n "__fish_gwctl_using_subcommand start" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand reload" -l timeout -d 'Seconds to wait for the node' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand reload" -s c -l conf -d 'Settings file in the form of kong.conf' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand reload" -s p -l prefix -d 'Folder of the node: store, cache, node id' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand reload" -l set -d 'Any setting by its key in kong.conf, may be repeated' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand reload" -l until-stdin-ends -d 'Stop when standard input ends, for whoever starts the node as a child'
complete -c gwctl -n "__fish_gwctl_using_subcommand reload" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand upgrade" -l timeout -d 'Seconds to wait for the node' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand upgrade" -s c -l conf -d 'Settings file in the form of kong.conf' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand upgrade" -s p -l prefix -d 'Folder of the node: store, cache, node id' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand upgrade" -l set -d 'Any setting by its key in kong.conf, may be repeated' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand upgrade" -l until-stdin-ends -d 'Stop when standard input ends, for whoever starts the node as a child'
complete -c gwctl -n "__fish_gwctl_using_subcommand upgrade" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand quit" -l timeout -d 'Seconds to wait for the node' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand quit" -s c -l conf -d 'Settings file in the form of kong.conf' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand quit" -s p -l prefix -d 'Folder of the node: store, cache, node id' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand quit" -l set -d 'Any setting by its key in kong.conf, may be repeated' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand quit" -l until-stdin-ends -d 'Stop when standard input ends, for whoever starts the node as a child'
complete -c gwctl -n "__fish_gwctl_using_subcommand quit" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand stop" -l timeout -d 'Seconds to wait for the node' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand stop" -s c -l conf -d 'Settings file in the form of kong.conf' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand stop" -s p -l prefix -d 'Folder of the node: store, cache, node id' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand stop" -l set -d 'Any setting by its key in kong.conf, may be repeated' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand stop" -l until-stdin-ends -d 'Stop when standard input ends, for whoever starts the node as a child'
complete -c gwctl -n "__fish_gwctl_using_subcommand stop" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand cp; and not __fish_seen_subcommand_from start help" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand cp; and not __fish_seen_subcommand_from start help" -f -a "start" -d 'Start a control plane: store, Admin API and cluster listener'
complete -c gwctl -n "__fish_gwctl_using_subcommand cp; and not __fish_seen_subcommand_from start help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gwctl -n "__fish_gwctl_using_subcommand cp; and __fish_seen_subcommand_from start" -s c -l conf -d 'Settings file in the form of kong.conf' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand cp; and __fish_seen_subcommand_from start" -s p -l prefix -d 'Folder of the node: store, cache, node id' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand cp; and __fish_seen_subcommand_from start" -l set -d 'Any setting by its key in kong.conf, may be repeated' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand cp; and __fish_seen_subcommand_from start" -l until-stdin-ends -d 'Stop when standard input ends, for whoever starts the node as a child'
complete -c gwctl -n "__fish_gwctl_using_subcommand cp; and __fish_seen_subcommand_from start" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand cp; and __fish_seen_subcommand_from help" -f -a "start" -d 'Start a control plane: store, Admin API and cluster listener'
complete -c gwctl -n "__fish_gwctl_using_subcommand cp; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and not __fish_seen_subcommand_from join list describe help" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and not __fish_seen_subcommand_from join list describe help" -f -a "join" -d 'Start a data plane that joins a control plane'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and not __fish_seen_subcommand_from join list describe help" -f -a "list" -d 'List the data planes of a control plane: state, version, configuration, lag'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and not __fish_seen_subcommand_from join list describe help" -f -a "describe" -d 'Show everything a control plane knows of one data plane'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and not __fish_seen_subcommand_from join list describe help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from join" -l cluster-cert -d 'Cluster certificate (cluster_cert)' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from join" -l cluster-key -d 'Its key (cluster_cert_key)' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from join" -l label -d 'Label of this data plane (cluster_dp_labels), may be repeated' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from join" -s c -l conf -d 'Settings file in the form of kong.conf' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from join" -s p -l prefix -d 'Folder of the node: store, cache, node id' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from join" -l set -d 'Any setting by its key in kong.conf, may be repeated' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from join" -l until-stdin-ends -d 'Stop when standard input ends, for whoever starts the node as a child'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from join" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from list" -s o -l output -d 'Form of the output' -r -f -a "table\t'One row per item, for people'
json\t''
yaml\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from list" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless NO_COLOR or TERM=dumb speak against it'
always\t''
never\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from list" -l addr -d 'Address of the Admin API' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from list" -l token-file -d 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from list" -l cacert -d 'PEM file of authorities to trust, for https' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from list" -l timeout -d 'Limit of each request: 500ms, 10s, 2m; 10s when not given' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from list" -l ascii -d 'Only ASCII characters'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from list" -l insecure -d 'Trust any certificate of https'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from describe" -s o -l output -d 'Form of the output' -r -f -a "table\t'One row per item, for people'
json\t''
yaml\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from describe" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless NO_COLOR or TERM=dumb speak against it'
always\t''
never\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from describe" -l addr -d 'Address of the Admin API' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from describe" -l token-file -d 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from describe" -l cacert -d 'PEM file of authorities to trust, for https' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from describe" -l timeout -d 'Limit of each request: 500ms, 10s, 2m; 10s when not given' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from describe" -l ascii -d 'Only ASCII characters'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from describe" -l insecure -d 'Trust any certificate of https'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from describe" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from help" -f -a "join" -d 'Start a data plane that joins a control plane'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from help" -f -a "list" -d 'List the data planes of a control plane: state, version, configuration, lag'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from help" -f -a "describe" -d 'Show everything a control plane knows of one data plane'
complete -c gwctl -n "__fish_gwctl_using_subcommand dp; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gwctl -n "__fish_gwctl_using_subcommand certs; and not __fish_seen_subcommand_from init show help" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand certs; and not __fish_seen_subcommand_from init show help" -f -a "init" -d 'Make the certificates of a cluster'
complete -c gwctl -n "__fish_gwctl_using_subcommand certs; and not __fish_seen_subcommand_from init show help" -f -a "show" -d 'Print what a certificate says'
complete -c gwctl -n "__fish_gwctl_using_subcommand certs; and not __fish_seen_subcommand_from init show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gwctl -n "__fish_gwctl_using_subcommand certs; and __fish_seen_subcommand_from init" -l dir -d 'Folder to write into; made when missing' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand certs; and __fish_seen_subcommand_from init" -l days -d 'Days the certificates are valid' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand certs; and __fish_seen_subcommand_from init" -l name -d 'Host name or address of the control plane, may be repeated; with --pki' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand certs; and __fish_seen_subcommand_from init" -l pki -d 'An authority that issues one certificate to the control plane and one to data planes (cluster_mtls = pki)'
complete -c gwctl -n "__fish_gwctl_using_subcommand certs; and __fish_seen_subcommand_from init" -l force -d 'Replace files that are there'
complete -c gwctl -n "__fish_gwctl_using_subcommand certs; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand certs; and __fish_seen_subcommand_from show" -s o -l output -d 'Form of the output' -r -f -a "table\t'One row per item, for people'
json\t''
yaml\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand certs; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand certs; and __fish_seen_subcommand_from help" -f -a "init" -d 'Make the certificates of a cluster'
complete -c gwctl -n "__fish_gwctl_using_subcommand certs; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print what a certificate says'
complete -c gwctl -n "__fish_gwctl_using_subcommand certs; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gwctl -n "__fish_gwctl_using_subcommand apply" -s f -l file -d 'Declarative file, folder of such files, or - for stdin; may be repeated' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand apply" -l select-tag -d 'Only delete records with this tag, and give it to those of the files; may be repeated' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand apply" -s o -l output -d 'Form of the output' -r -f -a "table\t'One row per item, for people'
json\t''
yaml\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand apply" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless NO_COLOR or TERM=dumb speak against it'
always\t''
never\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand apply" -l addr -d 'Address of the Admin API' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand apply" -l token-file -d 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand apply" -l cacert -d 'PEM file of authorities to trust, for https' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand apply" -l timeout -d 'Limit of each request: 500ms, 10s, 2m; 10s when not given' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand apply" -l wait -d 'Wait until all connected data planes have it, or so many of a hundred (80%); up to --timeout, 60s when not given' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand apply" -l prune -d 'Delete what the files do not have'
complete -c gwctl -n "__fish_gwctl_using_subcommand apply" -l ascii -d 'Only ASCII characters'
complete -c gwctl -n "__fish_gwctl_using_subcommand apply" -l insecure -d 'Trust any certificate of https'
complete -c gwctl -n "__fish_gwctl_using_subcommand apply" -l dry-run -d 'Print what would be done and do nothing; exit code 2 when there is something to do'
complete -c gwctl -n "__fish_gwctl_using_subcommand apply" -s y -l yes -d 'Do not ask before records are deleted'
complete -c gwctl -n "__fish_gwctl_using_subcommand apply" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand diff" -s f -l file -d 'Declarative file, folder of such files, or - for stdin; may be repeated' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand diff" -l select-tag -d 'Only delete records with this tag, and give it to those of the files; may be repeated' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand diff" -s o -l output -d 'Form of the output' -r -f -a "table\t'One row per item, for people'
json\t''
yaml\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand diff" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless NO_COLOR or TERM=dumb speak against it'
always\t''
never\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand diff" -l addr -d 'Address of the Admin API' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand diff" -l token-file -d 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand diff" -l cacert -d 'PEM file of authorities to trust, for https' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand diff" -l timeout -d 'Limit of each request: 500ms, 10s, 2m; 10s when not given' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand diff" -l prune -d 'Delete what the files do not have'
complete -c gwctl -n "__fish_gwctl_using_subcommand diff" -l ascii -d 'Only ASCII characters'
complete -c gwctl -n "__fish_gwctl_using_subcommand diff" -l insecure -d 'Trust any certificate of https'
complete -c gwctl -n "__fish_gwctl_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand history" -l limit -d 'Versions to list' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand history" -s o -l output -d 'Form of the output' -r -f -a "table\t'One row per item, for people'
json\t''
yaml\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand history" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless NO_COLOR or TERM=dumb speak against it'
always\t''
never\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand history" -l addr -d 'Address of the Admin API' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand history" -l token-file -d 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand history" -l cacert -d 'PEM file of authorities to trust, for https' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand history" -l timeout -d 'Limit of each request: 500ms, 10s, 2m; 10s when not given' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand history" -l ascii -d 'Only ASCII characters'
complete -c gwctl -n "__fish_gwctl_using_subcommand history" -l insecure -d 'Trust any certificate of https'
complete -c gwctl -n "__fish_gwctl_using_subcommand history" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand rollback" -l wait -d 'Wait until all connected data planes have it, or so many of a hundred (80%); up to --timeout, 60s when not given' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand rollback" -s o -l output -d 'Form of the output' -r -f -a "table\t'One row per item, for people'
json\t''
yaml\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand rollback" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless NO_COLOR or TERM=dumb speak against it'
always\t''
never\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand rollback" -l addr -d 'Address of the Admin API' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand rollback" -l token-file -d 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand rollback" -l cacert -d 'PEM file of authorities to trust, for https' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand rollback" -l timeout -d 'Limit of each request: 500ms, 10s, 2m; 10s when not given' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand rollback" -l dry-run -d 'Print what would be done and do nothing; exit code 2 when there is something to do'
complete -c gwctl -n "__fish_gwctl_using_subcommand rollback" -s y -l yes -d 'Do not ask'
complete -c gwctl -n "__fish_gwctl_using_subcommand rollback" -l ascii -d 'Only ASCII characters'
complete -c gwctl -n "__fish_gwctl_using_subcommand rollback" -l insecure -d 'Trust any certificate of https'
complete -c gwctl -n "__fish_gwctl_using_subcommand rollback" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand validate" -s f -l file -d 'Declarative file, folder of such files, or - for stdin; may be repeated' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand validate" -s o -l output -d 'Form of the output' -r -f -a "table\t'One row per item, for people'
json\t''
yaml\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand validate" -l addr -d 'Address of the Admin API' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand validate" -l token-file -d 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand validate" -l cacert -d 'PEM file of authorities to trust, for https' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand validate" -l timeout -d 'Limit of each request: 500ms, 10s, 2m; 10s when not given' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand validate" -l partial -d 'References may lead to records that the files do not have'
complete -c gwctl -n "__fish_gwctl_using_subcommand validate" -l online -d 'Ask a control plane too, one request an entity'
complete -c gwctl -n "__fish_gwctl_using_subcommand validate" -l insecure -d 'Trust any certificate of https'
complete -c gwctl -n "__fish_gwctl_using_subcommand validate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand dump" -l from -d 'Address of the Admin API of a gwctl or Kong; the same as --addr' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand dump" -l format -d 'Dialect of the file' -r -f -a "kong\t'Kong\'s declarative format 3.0: for `POST /config` and declarative_config too'
deck\t'The files of decK'"
complete -c gwctl -n "__fish_gwctl_using_subcommand dump" -l select-tag -d 'Only records with this tag; several must all be there' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand dump" -s o -l output -d 'Form of the output' -r -f -a "yaml\t''
json\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand dump" -s w -l write -d 'Write to this file, readable by its owner only, rather than to stdout' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand dump" -l addr -d 'Address of the Admin API' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand dump" -l token-file -d 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand dump" -l cacert -d 'PEM file of authorities to trust, for https' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand dump" -l timeout -d 'Limit of each request: 500ms, 10s, 2m; 10s when not given' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand dump" -l defaults -d 'Write fields that stand at their default too'
complete -c gwctl -n "__fish_gwctl_using_subcommand dump" -l no-ids -d 'Leave ids out where names and places say enough'
complete -c gwctl -n "__fish_gwctl_using_subcommand dump" -l force -d 'Replace the file when it is there'
complete -c gwctl -n "__fish_gwctl_using_subcommand dump" -l insecure -d 'Trust any certificate of https'
complete -c gwctl -n "__fish_gwctl_using_subcommand dump" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand convert" -s f -l file -d 'Declarative file, folder of such files, or - for stdin; may be repeated' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand convert" -l to -d 'Dialect to write' -r -f -a "kong\t'Kong\'s declarative format 3.0: for `POST /config` and declarative_config too'
deck\t'The files of decK'"
complete -c gwctl -n "__fish_gwctl_using_subcommand convert" -s o -l output -d 'Form of the output' -r -f -a "yaml\t''
json\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand convert" -s w -l write -d 'Write to this file, readable by its owner only, rather than to stdout' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand convert" -l force -d 'Replace the file when it is there'
complete -c gwctl -n "__fish_gwctl_using_subcommand convert" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand get" -l of -d 'Only what hangs below this record' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand get" -l tag -d 'Only records that carry this tag; several must all be there' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand get" -s o -l output -d 'Form of the output' -r -f -a "table\t'One row per record, for people'
wide\t'A table with ids'
json\t''
yaml\t''
name\t'ENTITY/NAME, one per line'"
complete -c gwctl -n "__fish_gwctl_using_subcommand get" -l addr -d 'Address of the Admin API' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand get" -l token-file -d 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand get" -l cacert -d 'PEM file of authorities to trust, for https' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand get" -l timeout -d 'Limit of each request: 500ms, 10s, 2m; 10s when not given' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand get" -l insecure -d 'Trust any certificate of https'
complete -c gwctl -n "__fish_gwctl_using_subcommand get" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -l host -d 'Host of the request, with its port if it has one; that of the URL when not given' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -s H -l header -d 'Header of the request, may be repeated' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -l sni -d 'Server name of the TLS handshake; the host of an https URL when not given' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -l source -d 'Address of the client, for routes by expression' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -s f -l file -d 'Declarative file, folder of such files, or - for stdin; may be repeated. The Admin API is asked when not given' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -l flavor -d 'How the routes of files are read (router_flavor); a control plane tells its own' -r -f -a "traditional_compatible\t''
traditional\t''
expressions\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -l expect -d 'Name or id of the route that must answer; exit code 6 when it does not' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -s o -l output -d 'Form of the output' -r -f -a "table\t'One row per item, for people'
json\t''
yaml\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless NO_COLOR or TERM=dumb speak against it'
always\t''
never\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -l addr -d 'Address of the Admin API' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -l token-file -d 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -l cacert -d 'PEM file of authorities to trust, for https' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -l timeout -d 'Limit of each request: 500ms, 10s, 2m; 10s when not given' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -l all -d 'Show every route, however many there are'
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -l ascii -d 'Only ASCII characters'
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -l insecure -d 'Trust any certificate of https'
complete -c gwctl -n "__fish_gwctl_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand top" -l interval -d 'Time between two looks' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand top" -l note -d 'A line above the keys, for whoever starts it as a child' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand top" -l color -d 'When to use colours' -r -f -a "auto\t'On a terminal, unless NO_COLOR or TERM=dumb speak against it'
always\t''
never\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand top" -l addr -d 'Address of the Admin API' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand top" -l token-file -d 'File with the token that the Admin API asks for (admin_auth = token); GWCTL_TOKEN may hold the token itself' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand top" -l cacert -d 'PEM file of authorities to trust, for https' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand top" -l timeout -d 'Limit of each request: 500ms, 10s, 2m; 10s when not given' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand top" -l once -d 'Print one frame and end; so it is wherever there is no terminal'
complete -c gwctl -n "__fish_gwctl_using_subcommand top" -l ascii -d 'Only ASCII characters'
complete -c gwctl -n "__fish_gwctl_using_subcommand top" -l insecure -d 'Trust any certificate of https'
complete -c gwctl -n "__fish_gwctl_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand config; and not __fish_seen_subcommand_from show help" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand config; and not __fish_seen_subcommand_from show help" -f -a "show" -d 'Print every effective setting'
complete -c gwctl -n "__fish_gwctl_using_subcommand config; and not __fish_seen_subcommand_from show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gwctl -n "__fish_gwctl_using_subcommand config; and __fish_seen_subcommand_from show" -s o -l output -d 'Form of the output' -r -f -a "table\t'One row per item, for people'
json\t''
yaml\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand config; and __fish_seen_subcommand_from show" -s c -l conf -d 'Settings file in the form of kong.conf' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand config; and __fish_seen_subcommand_from show" -s p -l prefix -d 'Folder of the node: store, cache, node id' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand config; and __fish_seen_subcommand_from show" -l set -d 'Any setting by its key in kong.conf, may be repeated' -r
complete -c gwctl -n "__fish_gwctl_using_subcommand config; and __fish_seen_subcommand_from show" -l origin -d 'Also print where each value comes from'
complete -c gwctl -n "__fish_gwctl_using_subcommand config; and __fish_seen_subcommand_from show" -l changed -d 'Only settings that do not stand at their default'
complete -c gwctl -n "__fish_gwctl_using_subcommand config; and __fish_seen_subcommand_from show" -l until-stdin-ends -d 'Stop when standard input ends, for whoever starts the node as a child'
complete -c gwctl -n "__fish_gwctl_using_subcommand config; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print every effective setting'
complete -c gwctl -n "__fish_gwctl_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gwctl -n "__fish_gwctl_using_subcommand completions" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand man" -l dir -d 'Folder to write into; made when missing' -r -F
complete -c gwctl -n "__fish_gwctl_using_subcommand man" -s h -l help -d 'Print help'
complete -c gwctl -n "__fish_gwctl_using_subcommand version" -s o -l output -d 'Form of the output' -r -f -a "table\t'One row per item, for people'
json\t''
yaml\t''"
complete -c gwctl -n "__fish_gwctl_using_subcommand version" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand exit-codes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "quickstart" -d 'Run a whole cluster with traffic in this terminal'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "demo-upstream" -d 'The upstream of the quickstart'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "start" -d 'Start a node in the role its settings say (traditional, control_plane or data_plane)'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "reload" -d 'Let a running node read its settings and certificates again (SIGHUP)'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "upgrade" -d 'Let the program on disk take over from a running node, without a lost connection (SIGUSR2)'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "quit" -d 'Stop a node once what is in flight has ended, within shutdown_grace (SIGQUIT)'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "stop" -d 'Stop a node soon, within shutdown_fast_grace (SIGTERM)'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "cp" -d 'Control planes'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "dp" -d 'Data planes'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "certs" -d 'Certificates of a cluster'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "apply" -d 'Bring the configuration of a control plane to what files say'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "diff" -d 'Show what `apply` would do'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "history" -d 'List the versions of the configuration: when, who, how much; or show what one did'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "rollback" -d 'Make the configuration what it was at a version'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "validate" -d 'Find the mistakes of declarative files, with line and column'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "dump" -d 'Write what is configured as a declarative file'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "convert" -d 'Turn files of Kong and of decK into each other'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "get" -d 'List or show what is configured'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "explain" -d 'Tell which route answers a request, and why the others do not'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "top" -d 'Watch the fleet in the terminal'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "config" -d 'Settings of a node'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "completions" -d 'Print the completion script of a shell'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "man" -d 'Write the man pages into a folder'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "version" -d 'Print version and build facts'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "exit-codes" -d 'The codes that commands end with'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and not __fish_seen_subcommand_from quickstart demo-upstream start reload upgrade quit stop cp dp certs apply diff history rollback validate dump convert get explain top config completions man version exit-codes help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and __fish_seen_subcommand_from cp" -f -a "start" -d 'Start a control plane: store, Admin API and cluster listener'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and __fish_seen_subcommand_from dp" -f -a "join" -d 'Start a data plane that joins a control plane'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and __fish_seen_subcommand_from dp" -f -a "list" -d 'List the data planes of a control plane: state, version, configuration, lag'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and __fish_seen_subcommand_from dp" -f -a "describe" -d 'Show everything a control plane knows of one data plane'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and __fish_seen_subcommand_from certs" -f -a "init" -d 'Make the certificates of a cluster'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and __fish_seen_subcommand_from certs" -f -a "show" -d 'Print what a certificate says'
complete -c gwctl -n "__fish_gwctl_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "show" -d 'Print every effective setting'
