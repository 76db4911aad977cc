# Bash completion for implicit-diffusion. Installed, it is loaded at the first Tab; otherwise: source it.

_implicit_diffusion() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before='' command='' i names options
  ((COMP_CWORD > 0)) && before=${COMP_WORDS[COMP_CWORD - 1]}
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
      list | run | check | report | show-data | show-model | pretrain | finetune | sample | evaluate | verify-model | bench)
        command=${COMP_WORDS[i]}
        break
        ;;
    esac
  done
  COMPREPLY=()

  case $command in
    '')
      mapfile -t COMPREPLY < <(compgen -W 'list run check report show-data show-model bench
        pretrain finetune sample evaluate verify-model --help --version' -- "$word")
      ;;
    list)
      mapfile -t COMPREPLY < <(compgen -W '--help' -- "$word")
      ;;
    run | check | pretrain | finetune)
      case $before in
        --isa) mapfile -t COMPREPLY < <(compgen -W 'baseline v3 v4' -- "$word") ;;
        --output | --model) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
        --seed | --steps | --repeats | --threads | --set) ;;
        *)
          if [[ $word == -* ]]; then
            options='--help --seed --isa --set --portable-bits'
            [[ $command == pretrain || $command == finetune ]] && options+=' --classifier'
            [[ $command == finetune ]] && options+=' --model'
            [[ $command != check ]] && options+=' --steps --repeats --threads --output --overwrite --resume --print-config
              --quick --quiet --no-report'
            mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
          else
            names=$("$program" list 2>/dev/null | cut -d ' ' -f 1)
            mapfile -t COMPREPLY < <(
              compgen -W "$names" -- "$word"
              compgen -f -X '!*.toml' -- "$word"
              compgen -d -S / -- "$word"
            )
            # No space after a folder: the file in it is to come.
            [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace 2>/dev/null
          fi
          ;;
      esac
      ;;
    sample | evaluate)
      case $before in
        --sampler) mapfile -t COMPREPLY < <(compgen -W 'sde ode ddpm ddim' -- "$word") ;;
        --grid) mapfile -t COMPREPLY < <(compgen -W 'log-linear uniform cosine' -- "$word") ;;
        --reward) mapfile -t COMPREPLY < <(compgen -W 'brightness redness contrast class' -- "$word") ;;
        --count | --seed | --labels | --steps | --shard | --eta | --threads | --lambda-over-beta | --class) ;;
        *)
          if [[ $word == -* ]]; then
            options='--help --count --seed --steps --grid --shard --threads --output --portable-bits'
            [[ $command == sample ]] && options+=' --labels --sampler --eta --noise'
            [[ $command == evaluate ]] && options+=' --base --data --classifier --reward --class --lambda-over-beta'
            mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
          else
            mapfile -t COMPREPLY < <(compgen -d -- "$word")
          fi
          ;;
      esac
      ;;
    show-model)
      if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W '--help' -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
      fi
      ;;
    bench)
      if [[ $before == --isa ]]; then
        mapfile -t COMPREPLY < <(compgen -W 'baseline v3 v4' -- "$word")
      elif [[ $before == --only ]]; then
        mapfile -t COMPREPLY < <(compgen -W 'particles networks paper' -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -W '--help --isa --only' -- "$word")
      fi
      ;;
    verify-model)
      case $before in
        --tolerance) ;;
        *)
          if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W '--help --tolerance --portable-bits' -- "$word")
          else
            mapfile -t COMPREPLY < <(
              compgen -d -- "$word"
              compgen -f -X '!*.safetensors' -- "$word"
            )
          fi
          ;;
      esac
      ;;
    show-data)
      if [[ $before == --count ]]; then
        :
      elif [[ $word == -* && $before != --output ]]; then
        mapfile -t COMPREPLY < <(compgen -W '--help --test --count --output' -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      fi
      ;;
    report)
      if [[ $before == --output ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
      elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W '--help --output' -- "$word")
      else
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
      fi
      ;;
  esac
  return 0
}

complete -o filenames -F _implicit_diffusion implicit-diffusion
